// Recognizes a data file's kind by its content.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace leeway {

enum class FileKind {
  kIdxImages,
  kIdxLabels,
  kCifar10,
  kCifar100,
  kNpy,
  kNpz,
  kLibsvm,
  kCsv,
  kText,
  kPictures,
};

// Such as "IDX images" or "a table".
const char* NameOf(FileKind kind);

// Reads the first bytes of a file, which are enough to recognize its kind.
absl::StatusOr<std::string> HeadOfFile(const std::string& data_dir, const std::string& name);

// The kind of `name`, a file or folder in the data folder. INVALID_ARGUMENT: a job can read no such
// file (the error says what the file begins with), or a file named .csv or .tsv is not a table.
// Passes on errors of reading the file.
absl::StatusOr<FileKind> KindOfFile(const std::string& data_dir, const std::string& name);

}  // namespace leeway
