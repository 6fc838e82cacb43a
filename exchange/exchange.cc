#include "exchange/exchange.h"

#include <algorithm>

#include "common/status.h"
#include "exchange/state_fit.h"

namespace leeway {
namespace {

const char* NameOf(const v1::Exchange& exchange) {
  return exchange.has_elastic() ? "elastic" : exchange.has_delta() ? "delta" : "gradient";
}

}  // namespace

KeptState Exchange::EmptyState() const {
  StateNames names{.exchange = NameOf(context_.job.exchange()),
                   .residual = carrier().keeps_residual()};
  if (keeps_weights()) names.own = {"weights"};
  KeptState state = KeptState::Zeros(std::move(names), context_.schema.total());
  if (context_.program) state.program = "";
  return state;
}

absl::StatusOr<std::string> Exchange::SaveState() const {
  KeptState state = EmptyState();
  if (state.vectors.empty() && !context_.program) return std::string();
  if (keeps_weights()) {
    const std::span<const float> kept = kept_weights_.span();
    std::ranges::copy(kept.empty() ? context_.weights : kept, state.vectors[0].data());
  }
  if (state.names.residual) {
    RETURN_IF_ERROR(carrier().encoder()->Read(state_clock_, state.vectors.back().span()));
  }
  if (context_.program) state.program = kept_;
  return SerializeState(state);
}

void Exchange::StateIsBefore(uint64_t clock) {
  state_clock_ = clock;
  if (!keeps_weights()) return;
  if (kept_weights_.size() == 0) kept_weights_ = FloatBuffer(context_.weights.size());
  std::ranges::copy(context_.weights, kept_weights_.data());
}

absl::Status Exchange::LoadState(const std::string& bytes) {
  KeptState state = EmptyState();
  if (state.vectors.empty() && !context_.program) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool own, TakeUpState(bytes, context_.schema.total(), state));
  loaded_weights_ = keeps_weights() && own;
  if (loaded_weights_) {
    std::copy_n(state.vectors[0].data(), context_.weights.size(), context_.weights.data());
  }
  if (state.names.residual) {
    RETURN_IF_ERROR(carrier().encoder()->Set(state.vectors.back().span()));
  }
  loaded_ = std::move(state.program);
  return absl::OkStatus();
}

}  // namespace leeway
