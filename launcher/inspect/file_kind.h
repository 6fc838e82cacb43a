// What a file of data is, by its content.
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

// "IDX images", "a table".
const char* NameOf(FileKind kind);

// The first bytes of a file, enough to tell what it is.
absl::StatusOr<std::string> HeadOfFile(const std::string& data_dir, const std::string& name);

// Of `name`, a file or folder in the data folder. INVALID_ARGUMENT, saying what it begins with, for
// what is nothing that a job reads, and for a file called .csv or .tsv that is no table; errors of
// reading it.
absl::StatusOr<FileKind> KindOfFile(const std::string& data_dir, const std::string& name);

}  // namespace leeway
