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

// Returns a name for people, such as "IDX images" or "a table".
const char* NameOf(FileKind kind);

// Reads the first bytes of a file, which are enough to recognize its kind.
absl::StatusOr<std::string> HeadOfFile(const std::string& data_dir, const std::string& name);

// Returns the kind of `name`, a file or folder in the data folder. Returns INVALID_ARGUMENT if a
// job cannot read such a file (the error quotes the beginning of the file), or if a file named .csv
// or .tsv is not a table. Also returns the errors of reading the file.
absl::StatusOr<FileKind> KindOfFile(const std::string& data_dir, const std::string& name);

}  // namespace leeway
