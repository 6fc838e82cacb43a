#include "config/length.h"
#include "worker/exchange/exchange.h"
#include "worker/exchange/exchanges.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeContext& context) {
  if (IsSpread(context.job.exchange())) return MakeSpreadExchange(context);
  switch (context.job.exchange().type_case()) {
    case v1::Exchange::kGradient:
      return MakeGradientExchange(context);
    case v1::Exchange::kDelta:
      return MakeDeltaExchange(context);
    case v1::Exchange::kElastic:
      return MakeElasticExchange(context);
    case v1::Exchange::TYPE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("exchange: of no type that this build knows");
}

}  // namespace leeway
