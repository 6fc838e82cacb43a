// The progress of a job, and the time until it is done.
#pragma once

#include <deque>
#include <optional>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Returns the mean of the workers' completed clocks, or 0 without workers.
double MeanClock(const v1::JobStatus& status);
// Returns the share of the job that is done, 0 to 1; 0 while the job's length is not known.
double DoneShare(const v1::JobStatus& status);
// Returns the sum of the running workers' rates.
double SamplesPerSecond(const v1::JobStatus& status);
// Returns the mean loss of the workers that have trained, or nothing if no worker has trained.
std::optional<double> MeanLoss(const v1::JobStatus& status);

// Estimates the time left from the rate of the last half minute. So a slow start, or the earlier
// clocks of a resumed job, do not distort the estimate.
class EtaEstimator {
 public:
  // `clock` is the MeanClock at `now`. Calls must be in the order of time.
  void Add(Time now, double clock);
  // Returns the seconds from the last Add until the job reaches `clocks`. Returns nothing while the
  // clock has not advanced.
  std::optional<double> Seconds(double clocks) const;

 private:
  struct Sample {
    Time time;
    double clock;
  };
  std::deque<Sample> samples_;
};

}  // namespace leeway
