// Owns each rank's progress (run/core/rank_progress.h) and the evaluations, as the workers'
// heartbeats report them. The core must report here each heartbeat, and when the job goes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "run/core/rank_progress.h"
#include "server/coordinator/core/commands.h"

namespace leeway {

// Pure; not thread-safe.
class RunProgress {
 public:
  // The number of newest evaluations kept for the status.
  static constexpr size_t kEvaluationsKept = 1000;

  explicit RunProgress(uint32_t ranks) : ranks_(ranks) {}

  // Records a heartbeat, and logs what is new in it: at most one line of steps, however many clocks
  // it covers. Returns the new evaluations.
  std::vector<v1::EvaluationMetrics> Record(const v1::HeartbeatRequest& request, Time now,
                                            Commands& commands);
  // Takes every rank back to `clock`. Forgets evaluations after the cut at clock `cut`.
  void GoBack(uint64_t clock, uint64_t cut);
  // Fills in a line for each rank, the evaluations, and the largest staleness.
  void Fill(Time now, v1::JobStatus& status) const;

 private:
  std::vector<RankProgress> ranks_;
  std::vector<v1::EvaluationMetrics> evaluations_;
};

}  // namespace leeway
