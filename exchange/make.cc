#include <memory>

#include "exchange/exchange.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeContext& context) {
  const v1::Exchange& exchange = context.job.exchange();
  if (exchange.delta().spread() || exchange.elastic().spread()) {
    return absl::UnimplementedError(
        "only Leeway's own workers can use spread: true; remove it from the job's exchange");
  }
  switch (exchange.type_case()) {
    case v1::Exchange::kGradient:
      return MakeGradientExchange(context);
    case v1::Exchange::kDelta:
    case v1::Exchange::kElastic:
      return MakeWeightExchange(context);
    case v1::Exchange::TYPE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "exchange: this build does not know the type of the job's exchange");
}

}  // namespace leeway
