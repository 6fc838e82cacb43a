#include "exchange/step_exchange.h"

#include <algorithm>

#include "common/status.h"
#include "exchange/kept_state.h"
#include "exchange/step_exchanges.h"

namespace leeway {

absl::StatusOr<std::string> StepExchange::SaveState() const {
  KeptState state{.bytes = kept_};
  const std::span<const float> weights = context_.weights;
  if (keeps_weights()) state.weights.assign(weights.begin(), weights.end());
  if (context_.client.keeps_residual()) {
    state.residual.resize(weights.size());
    RETURN_IF_ERROR(context_.client.ReadResidual(residual_clock(), state.residual));
  }
  return SerializeKept(state);
}

absl::Status StepExchange::LoadState(const std::string& bytes) {
  ASSIGN_OR_RETURN(KeptState state, ReadKept(bytes, context_.weights.size()));
  loaded_weights_ = keeps_weights() && !state.weights.empty();
  if (loaded_weights_)
    std::copy(state.weights.begin(), state.weights.end(), context_.weights.begin());
  if (context_.client.keeps_residual() && !state.residual.empty()) {
    RETURN_IF_ERROR(context_.client.SetResidual(state.residual));
  }
  loaded_ = std::move(state.bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StepExchange>> MakeStepExchange(const StepExchangeContext& context) {
  const v1::Exchange& exchange = context.registration.job().exchange();
  if (exchange.delta().spread() || exchange.elastic().spread()) {
    return absl::UnimplementedError(
        "only Leeway's own workers can use spread: true; remove it from the job's exchange");
  }
  return exchange.has_gradient() ? MakeGradientSteps(context) : MakeWeightSteps(context);
}

}  // namespace leeway
