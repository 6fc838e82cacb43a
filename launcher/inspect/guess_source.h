// The source of a job that files of data fit into.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/inspect/file_kind.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct GuessedSource {
  v1::Source source;
  // Of each file.
  std::vector<FileKind> kinds;
};

// `names` are in the data folder and belong together: files of one kind, or features and labels in
// two files, in any order. INVALID_ARGUMENT says what they are and what is needed.
absl::StatusOr<GuessedSource> GuessSource(const std::string& data_dir,
                                          const std::vector<std::string>& names);

}  // namespace leeway
