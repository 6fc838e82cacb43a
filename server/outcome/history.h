// A run as its metrics.jsonl tells it (server/coordinator/metrics_log.h describes the file). What a
// resumed run did again counts once. It is for curves and reports: what a run is worth must not
// depend on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
    // The rank's clock before them, as far as the log tells it, and after them.
    uint64_t from = 0;
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
    // Of several lines.
    bool merged = false;
  };
  struct Evaluation {
    uint64_t clock = 0;
    double epoch = 0;
    double test_loss = 0;
    std::optional<double> test_accuracy;
    std::optional<double> test_top5_accuracy = {};
    // Mean absolute error and R2 of a regression.
    std::optional<double> test_mae = {};
    std::optional<double> test_r2 = {};
  };
  // What was not training: a worker came, went, a checkpoint was written.
  struct Event {
    // Seconds since 1970.
    double time = 0;
    std::string name;
    // Its other fields, for a person: "rank 1, clock 200".
    std::string details;
  };

  // Of a long run neighbours of a rank are merged: a bounded number, however long the log is. So
  // are evaluations thinned out, and of events the older ones left out.
  std::vector<Step> steps;
  // Of all workers: computed too late to count.
  uint64_t dropped_steps = 0;
  // Of all workers: left out because a gradient did not fit in fp16.
  uint64_t overflowed_steps = 0;
  // Of all workers: places in batches where another picture stood for a damaged one.
  uint64_t replaced_pictures = 0;
  // How often the job went back to a checkpoint, or was begun again from one before where it stood;
  // and how many clocks it had done by then that it had to do again.
  uint64_t went_back = 0;
  uint64_t clocks_again = 0;
  std::vector<Evaluation> evaluations;
  std::vector<Event> events;
  uint64_t events_left_out = 0;
  // Of the last job_finished; empty if there is none, or the job has been started again since.
  std::string state;
  std::string message;
  // Clocks mean something else in one of its starts than in another: other workers, other
  // exchanges.
  bool mixed = false;
  // The clock at which the first start that the log has began. Not 0: what came before is missing.
  std::optional<uint64_t> first_clock;
  // Wall seconds that were trained, over all starts of the job.
  double seconds = 0;

  // The log's name, for warnings.
  std::string file = "metrics.jsonl";
  // Lines that are none of a run's metrics, and which was the first and why ("line 7: ...").
  uint64_t lines_skipped = 0;
  std::string first_skipped;
  // Why the log could not be read, or not to its end.
  std::string unreadable;

  // The steps, times and bytes are not those of the whole run.
  bool HasGap() const { return lines_skipped > 0 || !unreadable.empty() || first_clock > 0; }
  // What of the log is missing here, for a person; empty if nothing is.
  std::string Gaps() const;
};

// What one worker did, summed up.
struct WorkerTotals {
  uint64_t steps = 0;
  uint64_t examples = 0;
  uint64_t clock = 0;
  uint64_t staleness = 0;
  StepTimes times;
};

// Reads a log of any size. It may be damaged: a line that tells of nothing is skipped and counted,
// and where the file cannot be read the history ends. A last line that a crash cut short is passed
// over, and a file that is not there is an empty history. In an object store the log lies in
// segments (docs/storage.md): of s3://BUCKET/RUN/metrics.jsonl those in s3://BUCKET/RUN/metrics.
RunHistory ReadHistory(const std::string& metrics_file);
RunHistory ParseHistory(std::string_view text);
// The same, but no evaluation is thinned out: for those who count them.
RunHistory ReadWithAllEvaluations(const std::string& metrics_file);

// By rank.
std::map<uint32_t, WorkerTotals> SumByWorker(const RunHistory& history);

}  // namespace leeway
