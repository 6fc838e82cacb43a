// Reads the history of a run from its metrics.jsonl (run/metrics_log.h describes the
// file). Clocks that a resumed run repeated count once. The history is for curves and reports. The
// result of a run must not depend on the history.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leeway {

// How a worker's time was spent, in seconds.
struct StepTimes {
  double data = 0;
  // Includes forward and backward. The rest is other computation and emulated slowness.
  double compute = 0;
  double forward = 0;
  double backward = 0;
  // The time while an exchange was in flight.
  double exchange = 0;
  // The part of `exchange` in which the worker waited.
  double wait = 0;

  double total() const { return data + compute + wait; }
  double other() const { return std::max(0.0, compute - forward - backward); }
  // The share of the exchange time that was hidden behind computation, 0..1; absent without an
  // exchange.
  std::optional<double> hidden() const;
  StepTimes& operator+=(const StepTimes& more);
};

struct RunHistory {
  // The metrics of some consecutive clocks of one worker (v1::StepMetrics).
  struct Step {
    uint32_t rank = 0;
    // The rank's clock before these clocks, as far as the log shows it.
    uint64_t from = 0;
    // The rank's clock after these clocks.
    uint64_t clock = 0;
    double epoch = 0;
    uint64_t steps = 0;
    uint64_t examples = 0;
    // NaN if the log has no loss.
    double train_loss = 0;
    uint64_t staleness = 0;
    StepTimes times = {};
    // Bytes to and from the servers.
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    // Whether it was merged from several lines.
    bool merged = false;
  };
  struct Evaluation {
    uint64_t clock = 0;
    double epoch = 0;
    double test_loss = 0;
    std::optional<double> test_accuracy;
    std::optional<double> test_top5_accuracy = {};
    // The mean absolute error and R2 of a regression.
    std::optional<double> test_mae = {};
    std::optional<double> test_r2 = {};
  };
  // An event that is not training: a worker came or left, a checkpoint was written.
  struct Event {
    // Seconds since 1970.
    double time = 0;
    std::string name;
    // The other fields of the event, for a person: "rank 1, clock 200".
    std::string details;
  };

  // The number of entries is bounded, however long the log is. In a long run neighbouring steps of
  // a rank are merged, evaluations are thinned out, and the older events are left out.
  std::vector<Step> steps;
  // Steps of all workers that came too late to count.
  uint64_t dropped_steps = 0;
  // Steps of all workers that were left out because a gradient did not fit in fp16.
  uint64_t overflowed_steps = 0;
  // How often, over all workers, another picture stood in for a damaged one in a batch.
  uint64_t replaced_pictures = 0;
  // How often the job went back to a checkpoint, or was started again from an earlier checkpoint.
  uint64_t went_back = 0;
  // The number of completed clocks that the job repeated because it went back.
  uint64_t clocks_again = 0;
  std::vector<Evaluation> evaluations;
  std::vector<Event> events;
  uint64_t events_left_out = 0;
  // The state and the reason from the last job_finished event. Empty if there is no such event, or
  // if the job was started again after it.
  std::string state;
  std::string message;
  // Whether a clock stands for different numbers of steps in the starts of the job, because of
  // other workers or other exchanges.
  bool mixed = false;
  // The clock at which the first start in the log began. If this clock is not 0, the log lacks the
  // clocks before.
  std::optional<uint64_t> first_clock;
  // The wall time of training in seconds, over all starts of the job.
  double seconds = 0;

  // The name of the log, for warnings.
  std::string file = "metrics.jsonl";
  // The number of lines that are not metrics of a run, and the first of them with the reason ("line
  // 7: ...").
  uint64_t lines_skipped = 0;
  std::string first_skipped;
  // Why the log could not be read, or not to its end.
  std::string unreadable;

  // Whether steps, times and bytes do not cover the whole run.
  bool HasGap() const { return lines_skipped > 0 || !unreadable.empty() || first_clock > 0; }
  // Describes for a person what the log lacks. Empty if the log is complete.
  std::string Gaps() const;
};

// The totals of one worker.
struct WorkerTotals {
  uint64_t steps = 0;
  uint64_t examples = 0;
  uint64_t clock = 0;
  uint64_t staleness = 0;
  StepTimes times;
};

// Reads a log of any size. The log may be damaged. A line that is not a metric is skipped and
// counted, and the history ends where the file cannot be read. A last line that a crash has cut
// short is ignored. For a missing file the history is empty. In an object store the log is divided
// into segments (docs/storage.md): s3://BUCKET/RUN/metrics.jsonl is in the folder
// s3://BUCKET/RUN/metrics.
RunHistory ReadHistory(const std::string& metrics_file);
RunHistory ParseHistory(std::string_view text);
// The same, but keeps all evaluations, for callers that count them.
RunHistory ReadWithAllEvaluations(const std::string& metrics_file);

// Returns the totals by rank.
std::map<uint32_t, WorkerTotals> SumByWorker(const RunHistory& history);

}  // namespace leeway
