// How far the run is, by what the workers' heartbeats tell: each rank's progress (progress.h) and
// the evaluations of all. Owns these; must be told of each heartbeat, and when the job goes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/progress.h"

namespace leeway {

// Pure; not thread-safe.
class RunProgress {
 public:
  // The newest ones are for the status.
  static constexpr size_t kEvaluationsKept = 1000;

  explicit RunProgress(uint32_t ranks) : ranks_(ranks) {}

  // What is new goes into the log: one line of steps at most, however many clocks it tells of. The
  // evaluations that are new.
  std::vector<v1::EvaluationMetrics> Record(const v1::HeartbeatRequest& request, Time now,
                                            Commands& commands);
  // Every rank stands at `clock` again. Evaluations of after the cut at `cut` are forgotten.
  void GoBack(uint64_t clock, uint64_t cut);
  // A line for each rank, the evaluations, and the largest staleness.
  void Fill(Time now, v1::JobStatus& status) const;

 private:
  std::vector<RankProgress> ranks_;
  std::vector<v1::EvaluationMetrics> evaluations_;
};

}  // namespace leeway
