// Shows what data files hold, and the part of a job that reads them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

struct Inspection {
  // A few lines for people to read.
  std::string summary;
  // The YAML of the key `data` and everything below it.
  std::string data;
  // The YAML of the key `model` and everything below it: a first model that fits the data.
  std::string model;
};

// Reads and describes the data: all of it, but only a sample of pictures. `names` are in the data
// folder and belong together (GuessSource). `label` names the column of a table's labels. If
// `label` is empty, the column is guessed, or an error asks for it. Errors name the file and the
// place in the file.
absl::StatusOr<Inspection> InspectData(const std::string& data_dir,
                                       const std::vector<std::string>& names,
                                       const std::string& label = "");

}  // namespace leeway
