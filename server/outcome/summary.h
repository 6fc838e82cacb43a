// summary.json: the result of a run, for scripts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/outcome/history.h"

namespace leeway {

struct RunSummary {
  std::string name;
  // finished, stopped or failed.
  std::string state;
  // Why, if there is a reason to give.
  std::string message;
  // Warnings for a person: parts of the run that could not be read or written.
  std::vector<std::string> warnings;
  uint32_t servers = 0;
  uint32_t workers = 0;
  uint64_t parameters = 0;
  // The cut that the model was exported from.
  std::optional<uint64_t> clock;
  // Local steps and training examples of all workers together, and the steps by rank.
  uint64_t steps = 0;
  std::vector<uint64_t> worker_steps;
  uint64_t examples = 0;
  // Steps that came too late to count, if a sync clock need not wait for everybody. Not included in
  // the other numbers.
  uint64_t dropped_steps = 0;
  // Steps that were left out because a gradient did not fit in fp16. Included in the other numbers.
  uint64_t overflowed_steps = 0;
  // Places in batches where another picture stood for a damaged one.
  uint64_t replaced_pictures = 0;
  // How often the job went back to a checkpoint, and how many clocks it did again.
  uint64_t went_back = 0;
  uint64_t clocks_again = 0;
  // Wall time of training.
  double seconds = 0;
  double samples_per_second = 0;
  std::optional<double> test_loss;
  std::optional<double> test_accuracy;
  // Of more than ten classes: the label's is among the five with the highest scores.
  std::optional<double> test_top5_accuracy;
  // exp(test_loss), of models with a label at each position.
  std::optional<double> test_perplexity;
  // Whether the model beats the best one that does not look at the input
  // (launcher/commands/learning.h). Nothing if it cannot be told. If false, why.
  std::optional<bool> learned;
  std::string why_not_learned;
  // Mean absolute error and R2 of a regression.
  std::optional<double> test_mae;
  std::optional<double> test_r2;
  uint64_t max_staleness = 0;
  // Bytes of payloads and their headers between workers and servers, all workers together.
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  // Empty without a model.
  std::string weights_sha256;
  // By rank, where workers.device is auto: what it stood for, "cpu" or "cuda"; empty: never known.
  std::vector<std::string> devices;
  // By rank, over all starts of the run.
  std::vector<uint32_t> worker_restarts;
  // By index.
  std::vector<uint32_t> server_restarts;
  // Where each rank's time went, over all its steps.
  std::map<uint32_t, StepTimes> worker_times;

  // Of all processes.
  uint32_t restarts() const;
};

// Fills in what the metrics know: steps, examples, dropped_steps, overflowed_steps,
// replaced_pictures, went_back, clocks_again, seconds, samples_per_second, max_staleness, bytes,
// worker_times. Adds a warning if they do not know everything.
void AddHistory(const RunHistory& history, RunSummary& summary);

// Takes the steps from the clocks of a cut, instead of those that `history` has from heartbeats,
// and scales the examples in proportion. The rate stays that of the history where it has gaps.
void SetSteps(std::vector<uint64_t> steps, const RunHistory& history, RunSummary& summary);
// The same if only the sum of the steps is known.
void SetSteps(uint64_t steps, const RunHistory& history, RunSummary& summary);

std::string SummaryJson(const RunSummary& summary);
// INVALID_ARGUMENT naming `file` and what is wrong in it, if SummaryJson did not write it so: no
// key may be missing, no value be one that it cannot have.
absl::StatusOr<RunSummary> ParseSummary(const std::string& json, const std::string& file);

}  // namespace leeway
