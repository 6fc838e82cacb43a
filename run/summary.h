// summary.json: the result of a run, for scripts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "run/history.h"

namespace leeway {

struct JobSize {
  std::string name;
  uint32_t servers = 0;
  uint32_t workers = 0;
};

struct ExportedModel {
  uint64_t parameters = 0;
  // The clock of the cut from which the model was exported.
  std::optional<uint64_t> clock;
  // The SHA-256 of the weights. Empty if there is no model.
  std::string weights_sha256;
};

// How well a model does on the test data.
struct TestResult {
  v1::EvaluationMetrics metrics;
  // exp(test_loss), for models with a label at each position.
  std::optional<double> perplexity = {};
};

// Whether the model beats the best model that does not look at the input
// (launcher/finish/learning.h).
struct Learning {
  // Absent if this is unknown because there are no test data, all their labels are the same, or the
  // loss is a plugin's.
  std::optional<bool> learned;
  // If `learned` is false, the reason, for a person.
  std::string why;
};

struct WorkersByRank {
  // The number of local steps, by rank.
  std::vector<uint64_t> steps;
  // The chosen device of each rank, if workers.device is auto: "cpu", "cuda", or an empty string if
  // the device was never known.
  std::vector<std::string> devices;
  // The number of restarts, over all starts of the run.
  std::vector<uint32_t> restarts;
  // How each rank spent its time, over all its steps.
  std::map<uint32_t, v1::StepMetrics> times;
};

struct RunSummary {
  JobSize job;
  // "finished", "stopped" or "failed".
  std::string state;
  // The reason for this state, if there is one to give.
  std::string message;
  // Warnings for a person: parts of the run that could not be read or written.
  std::vector<std::string> warnings;
  ExportedModel model;
  // The figures of all workers together. dropped_steps are steps that came too late to count, and
  // are not included in the other figures. The other figures include overflowed_steps.
  v1::StepMetrics total;
  Rewinds rewinds;
  // The wall time of training in seconds.
  double seconds = 0;
  double samples_per_second = 0;
  std::optional<TestResult> test;
  Learning learning;
  WorkersByRank by_rank;
  // The number of restarts of each server, by index, over all starts of the run.
  std::vector<uint32_t> server_restarts;

  // Returns the number of restarts of all processes together.
  uint32_t restarts() const;
};

// Adds what the metrics show: the figures of all workers together and of each worker, rewinds,
// seconds and the rate. Adds a warning if the metrics are incomplete.
void AddHistory(const RunHistory& history, RunSummary& summary);

// Sets the steps to `steps`, which come from the clocks of a cut, and not from heartbeats as in
// `history`. Scales the examples in proportion. If the history has gaps, leaves the rate unchanged.
void SetSteps(std::vector<uint64_t> steps, const RunHistory& history, RunSummary& summary);
// Sets the steps if only their sum is known.
void SetSteps(uint64_t steps, const RunHistory& history, RunSummary& summary);

// Adds the loss and the other figures of a test to a JSON document, with the keys of summary.json.
void AddTest(const TestResult& test, nlohmann::ordered_json& document);

std::string SummaryJson(const RunSummary& summary);
// Returns INVALID_ARGUMENT, naming `file` and the fault, if SummaryJson cannot have written `json`.
// Every key must be there, with a possible value.
absl::StatusOr<RunSummary> ParseSummary(const std::string& json, const std::string& file);

}  // namespace leeway
