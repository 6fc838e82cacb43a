// The loss scale of a worker that sends gradients (workers.precision: fp16; common/loss_scale.h).
//
// The worker keeps no state between clocks, but its next life must use the same scales to compute
// the same bits. So the coordinator must have recorded an overflow before the worker hands in the
// clock's contribution.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/loss_scale.h"
#include "worker/training/clock_runner.h"

namespace leeway {

// Not thread-safe. The context must outlive this object.
class GradientScale {
 public:
  explicit GradientScale(const RunnerContext& context);

  // Returns true if the job is fp16.
  bool active() const { return active_; }
  // Returns the factor on the loss at `clock`, which is 1 if the job is not fp16.
  float At(uint64_t clock) const;

  // Call this when the clock's contribution is computed. Returns nothing if the contribution fits.
  // If the contribution or one of its losses is not finite at a scale above 1, returns the reason
  // as a string; the caller must then leave the whole contribution out. Writes the clock's
  // overflowed steps and the new scale into the report. Returns an error if the coordinator could
  // not record the new scale.
  absl::StatusOr<std::optional<std::string>> Overflow(uint64_t clock,
                                                      std::span<const float> contribution,
                                                      ClockReport& report);

 private:
  const RunnerContext& context_;
  const bool active_;
  LossScaleHistory history_;
};

}  // namespace leeway
