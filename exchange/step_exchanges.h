// The kinds of step exchange. Only step_exchange.cc lists them.
#pragma once

#include <memory>

#include "exchange/step_exchange.h"

namespace leeway {

// The servers update by mean gradients.
std::unique_ptr<StepExchange> MakeGradientSteps(const StepExchangeContext& context);
// The worker trains by itself: delta and elastic exchanges.
std::unique_ptr<StepExchange> MakeWeightSteps(const StepExchangeContext& context);

}  // namespace leeway
