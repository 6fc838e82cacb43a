// Tracks how far the workers are, from the metrics in their heartbeats.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The progress of one rank over all its lives. A clock is recorded once: repetitions in heartbeats,
// and clocks that a new life computes again, are ignored. Pure; not thread-safe.
class RankProgress {
 public:
  // Returns false if the clock was recorded before.
  bool Record(const v1::StepMetrics& metrics, Time now);
  bool Record(const v1::EvaluationMetrics& metrics);
  void SetWaiting(std::string waiting) { waiting_ = std::move(waiting); }
  // Call this function when the job has gone back to `clock`. Later clocks are then recorded and
  // counted again. The numbers of steps and examples include all repetitions.
  void GoBack(uint64_t clock);

  uint64_t max_staleness() const { return totals_.staleness(); }
  void Fill(Time now, v1::WorkerStatus& status) const;

 private:
  struct Arrival {
    Time at;
    uint64_t examples = 0;
  };
  // Returns the examples per second over the last few seconds.
  double Rate(Time now) const;

  v1::StepMetrics last_;
  v1::StepMetrics totals_;
  uint64_t last_evaluation_ = 0;
  bool evaluated_ = false;
  std::string waiting_;
  std::deque<Arrival> recent_;
};

}  // namespace leeway
