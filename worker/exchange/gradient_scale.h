// The loss scale of a worker that sends gradients (workers.precision: fp16; common/loss_scale.h).
//
// The worker keeps nothing between clocks, and yet its next life must multiply by the same scales
// to compute the same bits. So an overflow is on the coordinator's record before the clock's
// contribution is handed in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/loss_scale.h"
#include "worker/exchange/exchange.h"

namespace leeway {

// Not thread-safe. The context outlives it.
class GradientScale {
 public:
  explicit GradientScale(const ExchangeContext& context);

  // The job is fp16.
  bool active() const { return active_; }
  // What the loss is multiplied by at `clock`; 1 where the job is not fp16.
  float At(uint64_t clock) const;

  // The clock's contribution is computed. Nothing: it fits. A text: it, or a loss of it, is not
  // finite at a scale above 1: it is to be left out whole, and why. The report has the clock's
  // overflowed steps and the scale from now on. Errors are those of putting the new scale on
  // record.
  absl::StatusOr<std::optional<std::string>> Overflow(uint64_t clock,
                                                      std::span<const float> contribution,
                                                      ClockReport& report);

 private:
  const ExchangeContext& context_;
  const bool active_;
  LossScaleHistory history_;
};

}  // namespace leeway
