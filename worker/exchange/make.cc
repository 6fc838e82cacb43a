#include <memory>

#include "client/exchange/gradient_guard.h"
#include "common/loss_scale.h"
#include "common/status.h"
#include "config/length.h"
#include "worker/exchange/device_encoder.h"
#include "worker/exchange/exchange.h"
#include "worker/exchange/exchanges.h"

namespace leeway {

namespace {

// A contribution that the host changes or adds up before it leaves comes down as it is.
bool HostTouches(const ExchangeContext& context) {
  const v1::Exchange& exchange = context.job.exchange();
  if (context.group != nullptr) return true;
  if (exchange.has_delta() || exchange.has_elastic()) return false;
  return context.length.steps_per_clock() > 1 || GuardsGradients(exchange) ||
         ScalesLoss(context.job);
}

absl::StatusOr<std::shared_ptr<DeviceEncoder>> MakeEncoder(const ExchangeContext& context) {
  const CodecPlan* const plan = context.client.codec_plan();
  const BlockLayout& layout = context.client.layout();
  const bool encodes = !context.backend.shares_host_memory() && !HostTouches(context) &&
                       context.client.keeps_residual() && DeviceEncoder::Takes(layout, *plan);
  if (!encodes) return nullptr;
  ASSIGN_OR_RETURN(std::shared_ptr<DeviceEncoder> encoder,
                   DeviceEncoder::Make(context.backend, layout, *plan));
  context.client.EncodeContributionsBy(*encoder);
  return encoder;
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
  return absl::InvalidArgumentError("exchange: of no type that this build knows");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeContext& context) {
  ExchangeContext whole = context;
  ASSIGN_OR_RETURN(whole.encoder, MakeEncoder(context));
  return MakeByType(whole);
}

}  // namespace leeway
