#include "worker/exchange/local_training.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/exchange/state_fit.h"
#include "worker/exchange/steps.h"

namespace leeway {

LocalTraining::LocalTraining(const ExchangeContext& context, LocalOptimizer optimizer, Own own)
    : context_(context), optimizer_(std::move(optimizer)), own_(own.vectors.size()) {
  const size_t total = context.schema.total();
  const auto slots = optimizer_.slots();
  saved_ = LocalState::Zeros({std::move(own.exchange),
                              std::move(own.names),
                              {slots.begin(), slots.end()},
                              context.client.keeps_residual()},
                             total, own.counts);
  state_.vectors = std::move(own.vectors);
  for (size_t i = 0; i < slots.size(); ++i) state_.vectors.emplace_back(total);
  state_.counts.resize(own.counts);
  StartSlots(state_);
  StartSlots(saved_);
}

void LocalTraining::StartSlots(LocalState& state) const {
  for (size_t i = 0; i < optimizer_.slots().size(); ++i) {
    FloatBuffer& slot = state.vectors[own_ + i];
    std::fill_n(slot.data(), slot.size(), optimizer_.slot_start(i));
  }
}

absl::StatusOr<StepResult> LocalTraining::Step(uint64_t clock, uint64_t step,
                                               std::span<float> local, std::span<float> gradient,
                                               std::span<const LocalAverage> averages,
                                               ClockReport& report) {
  report.learning_rate = optimizer_.LearningRate(step);
  ASSIGN_OR_RETURN(const StepResult result,
                   RunStep(context_, clock, step, local, gradient, report));
  if (result.examples == 0) return result;
  if (!optimizer_.Apply(step, ++state_.updates, gradient, averages, local,
                        std::span(state_.vectors).subspan(own_))) {
    return Annotate(NotFinite(local, gradient),
                    absl::StrCat(Who(context_, clock), ", step ", step));
  }
  return result;
}

absl::Status LocalTraining::NotFinite(std::span<const float> local,
                                      std::span<const float> gradient) const {
  RETURN_IF_ERROR(CheckFinite(context_.schema, "the gradient", 0, gradient));
  RETURN_IF_ERROR(CheckFinite(context_.schema, "the local weight", 0, local));
  const auto names = optimizer_.slots();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string what = absl::StrCat("the local optimizer's ", std::string(names[i]));
    RETURN_IF_ERROR(CheckFinite(context_.schema, what.c_str(), 0, state_.vectors[own_ + i].span()));
  }
  return absl::InternalError("the local optimizer refuses what is finite");
}

void LocalTraining::Keep(uint64_t clock) {
  saved_.CopyFrom(state_);
  if (!context_.client.keeps_residual()) return;
  context_.client.ReadResidual(clock, saved_.vectors.back().span());
}

absl::Status LocalTraining::Load(const std::string& bytes) {
  ASSIGN_OR_RETURN(loaded_, TakeUpState(bytes, context_.schema.total(), saved_));
  if (saved_.updates == 0) StartSlots(saved_);
  state_.CopyFrom(saved_);
  if (context_.client.keeps_residual()) context_.client.SetResidual(saved_.vectors.back().span());
  return absl::OkStatus();
}

}  // namespace leeway
