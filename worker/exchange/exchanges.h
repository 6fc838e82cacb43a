// The constructors of the exchanges, for make.cc. All other files include
// worker/exchange/exchange.h.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/exchange/exchange.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<Exchange>> MakeGradientExchange(const ExchangeContext& context);
absl::StatusOr<std::unique_ptr<Exchange>> MakeDeltaExchange(const ExchangeContext& context);
absl::StatusOr<std::unique_ptr<Exchange>> MakeElasticExchange(const ExchangeContext& context);
// Makes a delta or elastic exchange with `spread`.
absl::StatusOr<std::unique_ptr<Exchange>> MakeSpreadExchange(const ExchangeContext& context);

}  // namespace leeway
