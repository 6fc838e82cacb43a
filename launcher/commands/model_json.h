// What `leeway evaluate` and `leeway export` tell scripts of the model (--json), and people of an
// older one.
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "server/outcome/trained_model.h"

namespace leeway {

void AddJsonOption(CLI::App& command, std::string& json);

// checkpoint (its folder), clock, parameters, and passed_over: newer checkpoints that are damaged.
nlohmann::ordered_json ModelJson(const TrainedModel& model);

// On stderr, where newer checkpoints are damaged.
void WarnOfOlderModel(const TrainedModel& model);

// Nothing where no file is named.
absl::Status WriteJson(const std::string& file, const nlohmann::ordered_json& document);

}  // namespace leeway
