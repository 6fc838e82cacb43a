// What files of data hold, and the part of a job that reads them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

struct Inspection {
  // For people, a few lines.
  std::string summary;
  // YAML: "data:" and what follows.
  std::string data;
  // YAML: "model:" and what follows; a first model that fits the data.
  std::string model;
};

// Reads all of it; of pictures a sample. `names` are in the data folder and belong together
// (GuessSource). `label` names the column of a table's labels; empty: it is guessed, or asked for
// by an error. Errors name the file and the place in it.
absl::StatusOr<Inspection> InspectData(const std::string& data_dir,
                                       const std::vector<std::string>& names,
                                       const std::string& label = "");

}  // namespace leeway
