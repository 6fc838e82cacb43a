// Slows this worker down on purpose (workers.emulate), to show how a consistency mode deals with
// uneven machines.
#pragma once

#include <cstdint>

#include "common/clock.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The pauses are a pure function of the step. Immutable.
class Emulation {
 public:
  Emulation(const v1::TrainingJob& job, uint32_t rank);

  // Returns true if the job asks for slowdowns. If not, every pause is zero.
  bool active() const { return emulate_.step_milliseconds() > 0 || !emulate_.slow().empty(); }

  // Returns how long to pause after a step that took `measured`, so that the step takes
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
