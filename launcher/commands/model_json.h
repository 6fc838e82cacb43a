// What `leeway evaluate` and `leeway export` print about a model: JSON for scripts (--json), and a
// warning for people if the model is not from the newest checkpoint.
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "run/trained_model.h"

namespace leeway {

// Adds --json FILE.
void AddJsonOption(CLI::App& command, std::string& json);

// Returns the fields checkpoint (the checkpoint's folder), clock, parameters, and passed_over
// (newer checkpoints that are damaged).
nlohmann::ordered_json ModelJson(const TrainedModel& model);

// Warns on standard error if newer checkpoints are damaged.
void WarnOfOlderModel(const TrainedModel& model);

}  // namespace leeway
