// A run as its metrics.jsonl tells it (server/coordinator/metrics_log.h describes the file). What a
// resumed run did again counts once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

// Where a worker's time went, in seconds.
struct StepTimes {
  double data = 0;
  // With forward and backward; what is in neither is emulated slowness.
  double compute = 0;
  double forward = 0;
  double backward = 0;
  // While an exchange was under way, and what of it the worker stood still.
  double exchange = 0;
  double wait = 0;

  double total() const { return data + compute + wait; }
  double other() const { return std::max(0.0, compute - forward - backward); }
  // The share of the exchange that the compute hid, 0..1; absent if there was none.
  std::optional<double> hidden() const;
  StepTimes& operator+=(const StepTimes& more);
};

struct RunHistory {
  // Some clocks of one worker (v1::StepMetrics).
  struct Step {
    uint32_t rank = 0;
    uint64_t clock = 0;
    double epoch = 0;
    uint64_t steps = 0;
    uint64_t examples = 0;
    // NaN if the log has none.
    double train_loss = 0;
    uint64_t staleness = 0;
    StepTimes times = {};
    // To and from the servers.
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
  };
  struct Evaluation {
    uint64_t clock = 0;
    double epoch = 0;
    double test_loss = 0;
    std::optional<double> test_accuracy;
  };
  // What was not training: a worker came, went, a checkpoint was written.
  struct Event {
    // Seconds since 1970.
    double time = 0;
    std::string name;
    // Its other fields, for a person: "rank 1, clock 200".
    std::string details;
  };

  std::vector<Step> steps;
  // Of all workers: computed too late to count.
  uint64_t dropped_steps = 0;
  std::vector<Evaluation> evaluations;
  std::vector<Event> events;
  // Of the last job_finished; empty if there is none, or the job has been started again since.
  std::string state;
  std::string message;
  // How many there are.
  uint64_t ends = 0;
  // Wall seconds that were trained, over all starts of the job.
  double seconds = 0;
};

// What one worker did, summed up.
struct WorkerTotals {
  uint64_t steps = 0;
  uint64_t examples = 0;
  uint64_t clock = 0;
  uint64_t staleness = 0;
  StepTimes times;
};

// Reads the log. A last line that a crash cut short is passed over; anything else that is not an
// event is INVALID_ARGUMENT naming file and line. A file that is not there is an empty history.
absl::StatusOr<RunHistory> ReadHistory(const std::string& metrics_file);
absl::StatusOr<RunHistory> ParseHistory(const std::string& text, const std::string& file);

// By rank.
std::map<uint32_t, WorkerTotals> SumByWorker(const RunHistory& history);

}  // namespace leeway
