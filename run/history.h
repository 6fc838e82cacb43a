// Reads the history of a run from its metrics.jsonl (run/metrics_log.h describes the file). If a
// resumed run repeated a clock, the clock counts once. The history is for curves and reports; no
// result of a run may depend on it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// How often a job has gone back, and how much it has repeated.
struct Rewinds {
  // How often the job went back to a checkpoint, or was started again from an earlier checkpoint.
  uint64_t times = 0;
  // The number of completed clocks that the job repeated because it went back.
  uint64_t clocks = 0;
};

// Which file a history comes from, and which lines of this file could not be read.
struct LogFile {
  // The name, for warnings.
  std::string name = "metrics.jsonl";
  // The number of lines that are not metrics of a run, and the first of them with the reason ("line
  // 7: ...").
  uint64_t lines_skipped = 0;
  std::string first_skipped;
  // Why the log could not be read to its end; empty if it could.
  std::string unreadable;
};

struct RunHistory {
  // Some consecutive clocks of one worker.
  struct Step {
    uint32_t rank = 0;
    // The rank's clock before these clocks, as far as the log shows it.
    uint64_t from = 0;
    // The figures in the log.
    v1::StepMetrics metrics;
    // Whether this step was merged from several lines.
    bool merged = false;
  };
  // Any event other than a step or an evaluation, such as a worker that left or a checkpoint.
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
  // The figures of all lines together. A clock that was repeated counts each time.
  v1::StepMetrics told;
  Rewinds rewinds;
  std::vector<v1::EvaluationMetrics> evaluations;
  std::vector<Event> events;
  uint64_t events_left_out = 0;
  // The state and the reason from the last job_finished event. Empty if there is no such event, or
  // if the job was started again after it.
  std::string state;
  std::string message;
  // Whether a clock has different numbers of steps in different starts of the job, because the job
  // had other workers or exchanges.
  bool mixed = false;
  // The clock at which the first start in the log began. If it is not 0, the log lacks the earlier
  // clocks.
  std::optional<uint64_t> first_clock;
  // The wall time of training in seconds, over all starts of the job.
  double seconds = 0;

  LogFile file;

  // Returns true if steps, times and bytes cover only a part of the run.
  bool HasGap() const {
    return file.lines_skipped > 0 || !file.unreadable.empty() || first_clock > 0;
  }
  // Describes for a person what the log lacks. Returns an empty string if the log is complete.
  std::string Gaps() const;
};

// Reads a log of any size. The log may be damaged. A line that is not a metric is skipped and
// counted, and the history ends where the file cannot be read. A last line that a crash has cut
// short is ignored. For a missing file the history is empty. In an object store the log is divided
// into segments (docs/storage.md): s3://BUCKET/RUN/metrics.jsonl is in the folder
// s3://BUCKET/RUN/metrics.
RunHistory ReadHistory(const std::string& metrics_file);
RunHistory ParseHistory(std::string_view text);
// Does the same as ReadHistory, but keeps all evaluations, for callers that count them.
RunHistory ReadWithAllEvaluations(const std::string& metrics_file);

// Returns for each rank the figures of all its steps together.
std::map<uint32_t, v1::StepMetrics> SumByWorker(const RunHistory& history);

}  // namespace leeway
