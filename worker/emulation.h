// Makes this machine look uneven (workers.emulate), to see what a consistency mode does about it.
#pragma once

#include <cstdint>

#include "common/clock.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Pure, immutable.
class Emulation {
 public:
  Emulation(const v1::TrainingJob& job, uint32_t rank);

  // The job asks for it; otherwise every pause is zero.
  bool active() const { return emulate_.step_milliseconds() > 0 || !emulate_.slow().empty(); }

  // How long to wait after a step that took `measured`, so that it has taken
  //   factor max(step_milliseconds, measured),
  // where the factor is the product of the slowdowns that hit this rank at this step.
  Duration Pause(uint64_t step, Duration measured) const;

 private:
  double FactorAt(uint64_t step) const;

  const v1::Emulation emulate_;
  const uint64_t seed_;
  const uint32_t rank_;
};

}  // namespace leeway
