#include "launcher/supervision/log_tail.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/files/files.h"
#include "common/printable.h"

namespace leeway {
namespace {

// The bytes to read from the end of a log, far more than the requested lines need.
constexpr uint64_t kTailBytes = 16 << 10;
// The most bytes of the one log line that follows an event.
constexpr size_t kLastLineBytesMax = 300;

std::string LastBytes(const std::string& path) {
  absl::StatusOr<FileReader> file = FileReader::Open(path);
  if (!file.ok()) return "";
  const uint64_t bytes = std::min(file->size(), kTailBytes);
  std::string text(bytes, '\0');
  const std::span<uint8_t> target(reinterpret_cast<uint8_t*>(text.data()), text.size());
  if (!file->ReadAt(file->size() - bytes, target).ok()) return "";
  return text;
}

}  // namespace

std::string LogTail(const std::string& path, size_t lines) {
  const std::string text = LastBytes(path);
  std::vector<absl::string_view> all = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  if (all.empty()) return absl::StrCat("\n  ", path, " is empty");
  if (all.size() > lines) all.erase(all.begin(), all.end() - static_cast<ptrdiff_t>(lines));
  std::string tail = absl::StrCat("\n  the end of ", path, ":");
  for (absl::string_view line : all) absl::StrAppend(&tail, "\n    ", Printable(line));
  return tail;
}

std::string LastLine(const std::string& path) {
  const std::string text = LastBytes(path);
  const std::vector<absl::string_view> all = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return all.empty() ? "" : Printable(all.back(), kLastLineBytesMax);
}

}  // namespace leeway
