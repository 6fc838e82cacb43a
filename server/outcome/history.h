// A run as its metrics.jsonl tells it (server/coordinator/metrics_log.h describes the file). Clocks
// that a resumed run repeated count once. The history is for curves and reports. The result of a
// run must not depend on it.
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
  // Includes forward and backward. The rest of it is emulated slowness.
  double compute = 0;
  double forward = 0;
  double backward = 0;
  // The time while an exchange was under way, and the part of it in which the worker waited.
  double exchange = 0;
  double wait = 0;

  double total() const { return data + compute + wait; }
  double other() const { return std::max(0.0, compute - forward - backward); }
  // The share of the exchange time that was hidden behind computation, 0..1; absent without an
  // exchange.
  std::optional<double> hidden() const;
  StepTimes& operator+=(const StepTimes& more);
};

struct RunHistory {
  // Some clocks of one worker (v1::StepMetrics).
  struct Step {
    uint32_t rank = 0;
    // The rank's clock before and after these clocks. The clock before is what the log tells of it.
    uint64_t from = 0;
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
    // Mean absolute error and R2 of a regression.
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
  // How often the job went back to a checkpoint, or was started again from an earlier one; and how
  // many completed clocks it had to repeat because of that.
  uint64_t went_back = 0;
  uint64_t clocks_again = 0;
  std::vector<Evaluation> evaluations;
  std::vector<Event> events;
  uint64_t events_left_out = 0;
  // From the last job_finished. Empty without one, or if the job has been started again since.
  std::string state;
  std::string message;
  // Whether a clock means different things in the job's starts: other workers, other exchanges.
  bool mixed = false;
  // The clock at which the first start in the log began. If it is not 0, the log lacks what came
  // before.
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
  // What the log lacks, for a person; empty if it is complete.
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

// Reads a log of any size. The log may be damaged: a line without meaning is skipped and counted,
// and the history ends where the file cannot be read. A last line that a crash has cut short is
// ignored. A missing file is an empty history. In an object store the log is divided into segments
// (docs/storage.md): s3://BUCKET/RUN/metrics.jsonl is in the folder s3://BUCKET/RUN/metrics.
RunHistory ReadHistory(const std::string& metrics_file);
RunHistory ParseHistory(std::string_view text);
// The same without thinning out evaluations, for callers that count them.
RunHistory ReadWithAllEvaluations(const std::string& metrics_file);

// By rank.
std::map<uint32_t, WorkerTotals> SumByWorker(const RunHistory& history);

}  // namespace leeway
