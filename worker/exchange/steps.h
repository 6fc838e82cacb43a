// What every exchange does around a step: run it, check it, add it up.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "worker/exchange/exchange.h"

namespace leeway {

// Runs a step and adds it to the report. OUT_OF_RANGE if the loss is not finite.
absl::StatusOr<StepResult> RunStep(const ExchangeContext& context, uint64_t clock, uint64_t step,
                                   std::span<const float> weights, std::span<float> contribution,
                                   ClockReport& report);

// OUT_OF_RANGE, naming worker, clock and tensor, if some of `values`, which are `what`, are not
// finite.
absl::Status CheckFinite(const ExchangeContext& context, uint64_t clock, const char* what,
                         std::span<const float> values);

// PushPull, timed: fills in the report's staleness and exchange_seconds.
absl::Status PushPull(const ExchangeContext& context, uint64_t clock,
                      std::span<const float> contribution, std::span<float> weights,
                      ClockReport& report);

}  // namespace leeway
