#include "common/storage/segments.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/files/files.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr uint64_t kJoinBytes = 4 << 20;

// Returns the number of the segment with this name, or nothing if no segment can have this name.
std::optional<uint64_t> NumberOf(absl::string_view name) {
  uint64_t number = 0;
  const absl::string_view digits = name.substr(0, name.find('.'));
  if (digits.size() < 6 || digits.size() == name.size()) return std::nullopt;
  if (!absl::SimpleAtoi(digits, &number)) return std::nullopt;
  return number;
}

// Returns the segments in the order of their numbers.
absl::StatusOr<std::vector<std::pair<uint64_t, std::string>>> SegmentsOf(
    const std::string& folder) {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, storage->List(folder));
  std::vector<std::pair<uint64_t, std::string>> segments;
  for (const std::string& name : names) {
    if (const auto number = NumberOf(name)) segments.emplace_back(*number, name);
  }
  std::sort(segments.begin(), segments.end());
  return segments;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SegmentWriter>> SegmentWriter::Open(std::string folder,
                                                                   Options options) {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(folder));
  RETURN_IF_ERROR(storage->MakeFolder(folder));
  ASSIGN_OR_RETURN(const auto segments, SegmentsOf(folder));
  // Begin a new segment, because another process that is considered dead may still write to the
  // newest segment.
  const uint64_t number = segments.empty() ? 0 : segments.back().first + 1;
  return std::unique_ptr<SegmentWriter>(
      new SegmentWriter(std::move(folder), std::move(options), number));
}

absl::Status SegmentWriter::Append(const std::string& lines) {
  const bool waits = content_.size() > put_;
  if (content_.size() - put_ + lines.size() > options_.kept_bytes_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        folder_, ": the storage accepts no writes, so ", lines.size(), " bytes were dropped"));
  }
  content_ += lines;
  // The interval begins with the first of the lines that wait.
  if (!waits) tried_ = options_.now();
  return Tick();
}

absl::Status SegmentWriter::Tick() {
  const bool due = options_.now() - tried_ >= options_.every;
  if (content_.size() == put_ || !due) return absl::OkStatus();
  return Keep();
}

absl::Status SegmentWriter::Keep() {
  if (content_.size() == put_) return absl::OkStatus();
  tried_ = options_.now();
  RETURN_IF_ERROR(
      WriteStored(absl::StrFormat("%s/%06d.%s", folder_, number_, options_.extension), content_));
  put_ = content_.size();
  if (put_ < options_.segment_bytes) return absl::OkStatus();
  ++number_;
  content_.clear();
  put_ = 0;
  return absl::OkStatus();
}

absl::Status JoinSegments(const std::string& folder, const std::string& path) {
  ASSIGN_OR_RETURN(const auto segments, SegmentsOf(folder));
  if (segments.empty()) {
    return absl::NotFoundError(absl::StrCat("'", folder, "' has no log segments"));
  }
  ASSIGN_OR_RETURN(FileWriter joined, FileWriter::Create(path));
  std::vector<uint8_t> bytes;
  for (const auto& [number, name] : segments) {
    ASSIGN_OR_RETURN(const auto file, OpenStored(absl::StrCat(folder, "/", name)));
    for (uint64_t position = 0; position < file->size(); position += bytes.size()) {
      bytes.resize(std::min(kJoinBytes, file->size() - position));
      RETURN_IF_ERROR(file->ReadAt(position, bytes));
      RETURN_IF_ERROR(joined.Append(std::span<const uint8_t>(bytes)));
    }
  }
  return joined.Finish();
}

}  // namespace leeway
