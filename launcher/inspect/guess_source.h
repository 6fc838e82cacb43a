// Guesses the source of a job that reads given data files.
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
  // The source to evaluate on, if some of the files are for evaluation.
  std::optional<v1::Source> test = std::nullopt;
  // The chosen columns, if the source is a table.
  TableChoice table = {};
  std::vector<FileKind> kinds;
};

// Returns the guess. `names` are files in the data folder that belong together, in any order: files
// of one kind, or separate files for features and labels. `label` names a column of a table, or is
// empty (ChooseColumns). Returns INVALID_ARGUMENT if no source fits. The error says what is needed.
absl::StatusOr<GuessedSource> GuessSource(const std::string& data_dir,
                                          const std::vector<std::string>& names,
                                          const std::string& label);

}  // namespace leeway
