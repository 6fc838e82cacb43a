#include <memory>

#include "common/status.h"
#include "config/length.h"
#include "worker/exchange/device_encoder.h"
#include "worker/exchange/exchange.h"
#include "worker/exchange/exchanges.h"

namespace leeway {

namespace {

absl::StatusOr<std::shared_ptr<DeviceEncoder>> MakeEncoder(const ExchangeContext& context) {
  const CodecPlan* const plan = context.client.codec_plan();
  const BlockLayout& layout = context.client.layout();
  if (context.backend.shares_host_memory() || plan == nullptr) return nullptr;
  if (!EncodesOnDevice(context.job, context.length.steps_per_clock(), layout, *plan)) {
    return nullptr;
  }
  return DeviceEncoder::Make(context.backend, layout, *plan);
}

absl::StatusOr<std::unique_ptr<Exchange>> MakeByType(const ExchangeContext& context) {
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
  return absl::InvalidArgumentError(
      "exchange: this build does not know the type of the job's exchange");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeContext& context) {
  ExchangeContext whole = context;
  ASSIGN_OR_RETURN(whole.encoder, MakeEncoder(context));
  ASSIGN_OR_RETURN(auto exchange, MakeByType(whole));
  if (whole.encoder != nullptr) context.client.EncodeContributionsBy(*whole.encoder);
  return exchange;
}

}  // namespace leeway
