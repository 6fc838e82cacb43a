// The kinds of exchange. Only make.cc lists them.
#pragma once

#include <memory>

#include "exchange/exchange.h"

namespace leeway {

// Contributions are mean gradients.
std::unique_ptr<Exchange> MakeGradientExchange(const ExchangeContext& context);
// The worker trains by itself: delta and elastic exchanges.
std::unique_ptr<Exchange> MakeWeightExchange(const ExchangeContext& context);

}  // namespace leeway
