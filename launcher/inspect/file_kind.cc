#include "launcher/inspect/file_kind.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "launcher/inspect/table_guess.h"
#include "worker/data/cifar.h"
#include "worker/data/data_file.h"
#include "worker/data/data_folder.h"
#include "worker/data/text.h"
#include "worker/data/text/utf8.h"

namespace leeway {
namespace {

// The number of bytes of a text file that are examined.
constexpr size_t kHead = 64 << 10;

// Returns true if the bytes are UTF-8 text. The last character may be incomplete.
bool IsText(std::string_view head) {
  const size_t checked = head.size() < kHead ? head.size() : head.size() - 4;
  for (size_t at = 0; at < checked;) {
    const auto character = FirstCharacter(head.substr(at));
    if (!character.has_value() || character->code == 0) return false;
    at += character->bytes;
  }
  return true;
}

bool IsLibsvm(absl::string_view line) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ', absl::SkipWhitespace());
  if (parts.size() < 2 || !ParseNumber(parts[0]).ok()) return false;
  return std::all_of(parts.begin() + 1, parts.end(), [](absl::string_view part) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    return ParseNumber(pair.first).ok() && ParseNumber(pair.second).ok();
  });
}

bool IsCalledTable(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(absl::StripSuffix(name, ".gz"));
  return absl::EndsWith(lower, ".csv") || absl::EndsWith(lower, ".tsv");
}

absl::StatusOr<FileKind> KindOfText(const std::string& name, const std::string& head) {
  const absl::string_view first = absl::string_view(head).substr(0, head.find('\n'));
  if (IsLibsvm(first)) return FileKind::kLibsvm;
  if (GuessTable(head).has_value()) return FileKind::kCsv;
  if (!IsCalledTable(name)) return FileKind::kText;
  return absl::InvalidArgumentError(
      absl::StrCat(WhyNoTable(name, head), "; a file with another name is read as text"));
}

// Recognizes CIFAR records. They have no magic number, so every record's label must be valid.
absl::StatusOr<FileKind> KindOfRecords(const std::string& data_dir, const std::string& name,
                                       std::string_view head) {
  ASSIGN_OR_RETURN(DataFile ten, OpenDataFile(data_dir, name));
  if (ParseCifar10(std::move(ten), v1::LOSS_SQUARED).ok()) return FileKind::kCifar10;
  ASSIGN_OR_RETURN(DataFile hundred, OpenDataFile(data_dir, name));
  const auto parsed = ParseCifar100(std::move(hundred), v1::CIFAR100_LABELS_FINE, v1::LOSS_SQUARED);
  if (parsed.ok()) return FileKind::kCifar100;
  const std::string_view mark = head.substr(0, 2);
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": jobs cannot read this kind of file; it begins with ", Quote({head.data(), 8}),
      mark == "\xff\xfe" || mark == "\xfe\xff" ? "; if that is UTF-16, save it as UTF-8" : ""));
}

}  // namespace

const char* NameOf(FileKind kind) {
  switch (kind) {
    case FileKind::kIdxImages:
      return "IDX images";
    case FileKind::kIdxLabels:
      return "IDX labels";
    case FileKind::kCifar10:
      return "CIFAR-10 records";
    case FileKind::kCifar100:
      return "CIFAR-100 records";
    case FileKind::kNpy:
      return "a NumPy array";
    case FileKind::kNpz:
      return "NumPy arrays in an archive";
    case FileKind::kLibsvm:
      return "LIBSVM lines";
    case FileKind::kCsv:
      return "a table";
    case FileKind::kText:
      return "text";
    case FileKind::kPictures:
      return "a folder of pictures";
  }
  return "";
}

absl::StatusOr<std::string> HeadOfFile(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(const DataFile file, OpenDataFile(data_dir, name));
  std::string head(kHead, '\0');
  ASSIGN_OR_RETURN(const size_t count,
                   file.bytes->Read({reinterpret_cast<uint8_t*>(head.data()), head.size()}));
  head.resize(count);
  return head;
}

absl::StatusOr<FileKind> KindOfFile(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(const DataKind kind, KindOfData(data_dir, name));
  if (kind == DataKind::kFolder) return FileKind::kPictures;
  ASSIGN_OR_RETURN(const std::string head, HeadOfFile(data_dir, name));
  const std::string_view begin(head);
  if (begin.substr(0, 6) == "\x93NUMPY") return FileKind::kNpy;
  if (begin.substr(0, 4) == "PK\x03\x04") return FileKind::kNpz;
  if (begin.size() >= 4 && begin.substr(0, 3) == std::string_view("\0\0\x08", 3)) {
    return begin[3] == 1 ? FileKind::kIdxLabels : FileKind::kIdxImages;
  }
  if (IsText(begin)) return KindOfText(name, head);
  if (IsCalledTable(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": a table must be text in UTF-8: save it as UTF-8"));
  }
  return KindOfRecords(data_dir, name, begin);
}

}  // namespace leeway
