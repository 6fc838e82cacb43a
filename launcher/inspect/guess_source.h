// The source of a job that files of data fit into.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/inspect/file_kind.h"
#include "launcher/inspect/table_choice.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct GuessedSource {
  v1::Source source;
  // Of the same files, where they say that it is there to evaluate on.
  std::optional<v1::Source> test = std::nullopt;
  // Of a table.
  TableChoice table = {};
  // Of each file.
  std::vector<FileKind> kinds;
};

// `names` are in the data folder and belong together: files of one kind, or features and labels in
// files of their own, in any order. INVALID_ARGUMENT says what they are and what is needed.
// `label` names a table's column, or is empty (ChooseColumns).
absl::StatusOr<GuessedSource> GuessSource(const std::string& data_dir,
                                          const std::vector<std::string>& names,
                                          const std::string& label);

}  // namespace leeway
