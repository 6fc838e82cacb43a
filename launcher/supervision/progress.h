// How far a job is, and when it will be done.
#pragma once

#include <deque>
#include <optional>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Mean over the workers of the clocks completed; 0 without workers.
double MeanClock(const v1::JobStatus& status);
// Share of the job that is done, 0..1; 0 while its length is not known.
double DoneShare(const v1::JobStatus& status);
// Sum over the running workers.
double SamplesPerSecond(const v1::JobStatus& status);
// Mean over the workers that have trained; absent if none has.
std::optional<double> MeanLoss(const v1::JobStatus& status);

// The time left, from the rate of the last half minute: so that neither the start nor a resumed
// job's head start disturbs it.
class EtaEstimator {
 public:
  // `clock`: MeanClock at `now`. To be called in the order of time.
  void Add(Time now, double clock);
  // Seconds from the last Add until `clocks`; absent while nothing has moved.
  std::optional<double> Seconds(double clocks) const;

 private:
  struct Sample {
    Time time;
    double clock;
  };
  std::deque<Sample> samples_;
};

}  // namespace leeway
