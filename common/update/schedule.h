// Learning-rate schedules.
#pragma once

#include <cstdint>

#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The learning rate of an `update` as a function of time, counted in the clocks of contributions (a
// server's rule) or in local steps (a worker's own optimizer). Immutable and thread-safe.
class Schedule {
 public:
  static Schedule OverClocks(const v1::Update& update, const v1::JobLength& length);
  static Schedule OverSteps(const v1::Update& update, const v1::JobLength& length);

  // `time` counts from 0.
  //   constant  base
  //   step      base factor^floor(time / every)
  //   cosine    base (final + (1 - final) (1 + cos(pi min(time / over, 1))) / 2), Loshchilov and
  //             Hutter 2017, equation 5
  // With warm-up over n times min((time + 1) / n, 1): the first update moves by a n-th, not by
  // nothing.
  float LearningRate(uint64_t time) const;

 private:
  // One interval in the schedule's own unit of time.
  struct Units {
    double per_clock;
    double per_epoch;
    double whole_run;
  };
  Schedule(const v1::Update& update, const Units& units);
  double Factor(double time) const;

  double base_;
  v1::Schedule::TypeCase type_;
  // The step's `every` or the cosine's `over`; positive.
  double period_ = 1;
  // The step's factor or the cosine's final one.
  double factor_ = 1;
  // 0: none.
  double warm_up_ = 0;
};

}  // namespace leeway
