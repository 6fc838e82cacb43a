// summary.json: what came of a run, for scripts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/launcher/report/history.h"

namespace leeway {

struct RunSummary {
  std::string name;
  // finished, stopped or failed.
  std::string state;
  // Why, where there is a reason to give.
  std::string message;
  uint32_t servers = 0;
  uint32_t workers = 0;
  uint64_t parameters = 0;
  // The cut that the model was exported from.
  std::optional<uint64_t> clock;
  // Local steps and training examples of all workers together.
  uint64_t steps = 0;
  uint64_t examples = 0;
  // Computed too late to count, where a sync clock need not wait for everybody; in none of the
  // others.
  uint64_t dropped_steps = 0;
  // Of training, on the wall.
  double seconds = 0;
  double samples_per_second = 0;
  std::optional<double> test_loss;
  std::optional<double> test_accuracy;
  uint64_t max_staleness = 0;
  // Payloads and their headers between workers and servers, all workers together.
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  // Empty without a model.
  std::string weights_sha256;
  // By rank, over all starts of the run.
  std::vector<uint32_t> worker_restarts;
  // By index.
  std::vector<uint32_t> server_restarts;
  // Where each rank's time went, over all its steps.
  std::map<uint32_t, StepTimes> worker_times;

  // Of all processes.
  uint32_t restarts() const;
};

// Fills in what the metrics know: steps, examples, dropped_steps, seconds, samples_per_second,
// max_staleness, bytes, worker_times.
void AddHistory(const RunHistory& history, RunSummary& summary);

std::string SummaryJson(const RunSummary& summary);
// INVALID_ARGUMENT naming `file` if it is none.
absl::StatusOr<RunSummary> ParseSummary(const std::string& json, const std::string& file);

}  // namespace leeway
