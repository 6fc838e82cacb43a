// The progress of a job, and the time until it is done.
#pragma once

#include <deque>
#include <optional>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The mean of the workers' completed clocks; 0 without workers.
double MeanClock(const v1::JobStatus& status);
// The share of the job that is done, from 0 to 1. It is 0 while the job's length is not known.
double DoneShare(const v1::JobStatus& status);
// The sum over the running workers.
double SamplesPerSecond(const v1::JobStatus& status);
// The mean over the workers that have trained; absent if no worker has.
std::optional<double> MeanLoss(const v1::JobStatus& status);

// Estimates the time left from the rate of the last half minute. So neither the start nor a resumed
// job's earlier clocks distort the estimate.
class EtaEstimator {
 public:
  // `clock` is the MeanClock at `now`. Calls must be in the order of time.
  void Add(Time now, double clock);
  // Returns the seconds from the last Add until the job reaches `clocks`; absent while the clock
  // has not advanced.
  std::optional<double> Seconds(double clocks) const;

 private:
  struct Sample {
    Time time;
    double clock;
  };
  std::deque<Sample> samples_;
};

}  // namespace leeway
