// Learning-rate schedules.
#pragma once

#include <cstdint>
#include <optional>

#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns the factor of the learning rate for `workers` workers (job.proto, RateScaling), at least
// 1.
double RateScale(v1::RateScaling scaling, uint32_t workers);

// The learning rate of an `update` as a function of time. Time is counted in the clocks of
// contributions (a server's rule) or in local steps (a worker's own optimizer). `workers` is the
// number of workers in the job. Immutable and thread-safe.
class Schedule {
 public:
  static Schedule OverClocks(const v1::Update& update, const v1::JobLength& length,
                             uint32_t workers);
  static Schedule OverSteps(const v1::Update& update, const v1::JobLength& length,
                            uint32_t workers);

  // `time` counts from 0. If the run was resumed with other numbers, times in epochs follow the
  // examples seen, and times in clocks count all clocks of the run.
  //   constant  base
  //   step      base factor^floor(time / every)
  //   cosine    base (final + (1 - final) (1 + cos(pi min(time / over, 1))) / 2), Loshchilov and
  //             Hutter 2017, equation 5
  // where base is the update's rate times its scale (RateScale). Warm-up over n times multiplies by
  //   min((time + 1) / n, 1)                             without scaling: the first update moves by
  //                                                      a n-th, not by nothing
  //   1 / scale + (1 - 1 / scale) min(time / n, 1)       with: from the rate of one worker, which
  //                                                      the first update has (Goyal et al. 2017,
  //                                                      arXiv:1706.02677, section 2.2)
  float LearningRate(uint64_t time) const;

  // Returns the rate for one of `members` contributions that are applied one by one: LearningRate
  // divided by `members`. So a clock moves the model as far as one update with LearningRate does.
  // LearningRate has the scale of `members` workers here, so with linear scaling the result is the
  // unscaled rate.
  float ShareOfRate(uint64_t time, uint32_t members) const;

 private:
  // The lengths of a clock and of an epoch in the schedule's unit of time, and the times at which
  // clocks and epochs were 0. These two times differ if the run was resumed with other numbers.
  struct Units {
    double per_clock;
    double per_epoch;
    double clocks_begin;
    double epochs_begin;
    double end;
    // Whether the job's length is given in clocks, not in epochs.
    bool ends_by_clocks;
  };
  // A stretch of time that starts at `begin` and is counted in units of `length`.
  struct Stretch {
    double begin = 0;
    double length = 1;
    double Parts(double time) const { return (time - begin) / length; }
  };
  static Stretch StretchOf(const v1::Interval& interval, const Units& units);
  static Stretch WholeRun(const Units& units);
  Schedule(const v1::Update& update, const Units& units, uint32_t workers);
  double Factor(double time) const;
  double WarmUp(double time) const;

  v1::RateScaling scaling_;
  double rate_;
  // The rate's scale for all workers of the job.
  double scale_;
  v1::Schedule::TypeCase type_;
  // The step's `every` or the cosine's `over`.
  Stretch period_;
  // The step's factor or the cosine's final one.
  double factor_ = 1;
  std::optional<Stretch> warm_up_;
};

}  // namespace leeway
