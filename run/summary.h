// summary.json: the result of a run, for scripts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "run/history.h"

namespace leeway {

struct RunSummary {
  std::string name;
  // "finished", "stopped" or "failed".
  std::string state;
  // The reason, if there is one to give.
  std::string message;
  // Warnings for a person: parts of the run that could not be read or written.
  std::vector<std::string> warnings;
  uint32_t servers = 0;
  uint32_t workers = 0;
  uint64_t parameters = 0;
  // The clock of the cut that the model was exported from.
  std::optional<uint64_t> clock;
  // The local steps of all workers together.
  uint64_t steps = 0;
  // The local steps by rank.
  std::vector<uint64_t> worker_steps;
  // The training examples of all workers together.
  uint64_t examples = 0;
  // Steps that came too late to count, if a sync clock need not wait for all workers. Not included
  // in the other numbers.
  uint64_t dropped_steps = 0;
  // Steps that were left out because a gradient did not fit in fp16. Included in the other numbers.
  uint64_t overflowed_steps = 0;
  // How often another picture stood in for a damaged one in a batch.
  uint64_t replaced_pictures = 0;
  // How often the job went back to a checkpoint.
  uint64_t went_back = 0;
  // The number of clocks that the job repeated because it went back.
  uint64_t clocks_again = 0;
  // The wall time of training in seconds.
  double seconds = 0;
  double samples_per_second = 0;
  std::optional<double> test_loss;
  std::optional<double> test_accuracy;
  // For more than ten classes: the share of examples whose label is among the five classes with the
  // highest scores.
  std::optional<double> test_top5_accuracy;
  // exp(test_loss), for models with a label at each position.
  std::optional<double> test_perplexity;
  // Whether the model beats the best model that does not look at the input
  // (launcher/finish/learning.h). Absent if this cannot be decided. If false, why_not_learned
  // contains the reason.
  std::optional<bool> learned;
  std::string why_not_learned;
  // The mean absolute error and R2 of a regression.
  std::optional<double> test_mae;
  std::optional<double> test_r2;
  uint64_t max_staleness = 0;
  // Bytes of payloads and their headers between workers and servers, for all workers together.
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  // The SHA-256 of the weights. Empty if there is no model.
  std::string weights_sha256;
  // The chosen device by rank, if workers.device is auto: "cpu", "cuda", or an empty string if the
  // device was never known.
  std::vector<std::string> devices;
  // The restarts of workers by rank, over all starts of the run.
  std::vector<uint32_t> worker_restarts;
  // The restarts of servers by index, over all starts of the run.
  std::vector<uint32_t> server_restarts;
  // How each rank spent its time, over all its steps.
  std::map<uint32_t, v1::StepMetrics> worker_times;

  // The restarts of all processes.
  uint32_t restarts() const;
};

// Adds the figures of the metrics: steps, examples, dropped_steps, overflowed_steps,
// replaced_pictures, went_back, clocks_again, seconds, samples_per_second, max_staleness, bytes,
// worker_times. Adds a warning if the metrics are incomplete.
void AddHistory(const RunHistory& history, RunSummary& summary);

// Sets the steps, which come from the clocks of a cut, in place of the steps that `history` has
// from heartbeats. Scales the examples in proportion. If the history has gaps, the rate is not
// changed.
void SetSteps(std::vector<uint64_t> steps, const RunHistory& history, RunSummary& summary);
// The same if only the sum of the steps is known.
void SetSteps(uint64_t steps, const RunHistory& history, RunSummary& summary);

std::string SummaryJson(const RunSummary& summary);
// Returns INVALID_ARGUMENT, naming `file` and the fault, if SummaryJson cannot have written `json`.
// Every key must be there, with a possible value.
absl::StatusOr<RunSummary> ParseSummary(const std::string& json, const std::string& file);

}  // namespace leeway
