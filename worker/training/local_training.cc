#include "worker/training/local_training.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "exchange/state_fit.h"
#include "worker/training/steps.h"

namespace leeway {
LocalTraining::LocalTraining(const RunnerContext& context, LocalOptimizer optimizer, Own own)
    : context_(context),
      optimizer_(std::make_unique<const LocalOptimizer>(std::move(optimizer))),
      scales_(ScalesLoss(context.job)),
      own_(own.vectors.size()) {
  const auto slots = optimizer_->slots();
  names_ = {std::move(own.exchange),
            std::move(own.names),
            {slots.begin(), slots.end()},
            context.carrier.keeps_residual()};
  state_ = {.vectors = std::move(own.vectors), .counts = std::vector<uint64_t>(own.counts)};
  kept_.counts = state_.counts;
}

absl::StatusOr<LocalTraining> LocalTraining::Make(const RunnerContext& context,
                                                  LocalOptimizer optimizer, Own own) {
  LocalTraining training(context, std::move(optimizer), std::move(own));
  ASSIGN_OR_RETURN(training.finite_,
                   FlatVector::Twins(context.backend, FloatBuffer(FloatBuffer::kPageFloats)));
  for (size_t i = 0; i < training.own_; ++i) {
    ASSIGN_OR_RETURN(training.kept_.vectors.emplace_back(),
                     FlatVector::OnDevice(context.backend, context.schema.total()));
  }
  for (size_t slot = 0; slot < training.optimizer_->slots().size(); ++slot) {
    for (State* state : {&training.state_, &training.kept_}) {
      ASSIGN_OR_RETURN(state->vectors.emplace_back(), training.MakeSlot(slot));
    }
  }
  return training;
}

// Makes a slot with its value before the optimizer's first step.
absl::StatusOr<FlatVector> LocalTraining::MakeSlot(size_t slot) const {
  const size_t total = context_.schema.total();
  ASSIGN_OR_RETURN(FlatVector vector, FlatVector::OnDevice(context_.backend, total));
  context_.backend.Fill(total, optimizer_->slot_start(slot), vector.device().data());
  return vector;
}

absl::StatusOr<StepResult> LocalTraining::Step(uint64_t clock, uint64_t step,
                                               std::span<float> local, std::span<float> gradient,
                                               std::span<const LocalAverage> averages,
                                               ClockReport& report) {
  report.learning_rate = optimizer_->LearningRate(step);
  const double loss_sum = report.loss_sum;
  const uint64_t examples = report.examples;
  const float scale = scales_ ? state_.loss_scale.factor() : 1;
  // Sets the scale in the report even for a step without examples.
  if (scales_) report.loss_scale = scale;
  ASSIGN_OR_RETURN(StepResult result,
                   RunStep(context_, clock, step, {local, gradient, Home::kDevice, scale}, report));
  if (result.examples == 0) return result;
  ASSIGN_OR_RETURN(const bool overflowed, Overflowed(result.loss_sum, gradient, report));
  if (overflowed) {
    // Leaves the overflowed step out of the report.
    report.loss_sum = loss_sum;
    report.examples = examples;
    result.examples = 0;
    return result;
  }
  ASSIGN_OR_RETURN(const bool finite,
                   Apply(optimizer_->UpdateOf(step, ++state_.updates, gradient, averages, local)));
  if (finite) return result;
  return Annotate(SuggestBf16(context_, WhatIsNotFinite(local, gradient)),
                  absl::StrCat(Who(context_, clock), ", step ", step));
}

absl::StatusOr<bool> LocalTraining::Overflowed(double loss_sum, std::span<float> gradient,
                                               ClockReport& report) {
  if (!scales_) return false;
  ASSIGN_OR_RETURN(const bool fits, Fits(loss_sum, gradient));
  const bool overflowed = !fits && state_.loss_scale.log2 > 0;
  if (overflowed) {
    state_.loss_scale.Halve();
    ++report.overflowed_steps;
  } else {
    state_.loss_scale.Keep();
  }
  report.loss_scale = state_.loss_scale.factor();
  return overflowed;
}

absl::StatusOr<bool> LocalTraining::Apply(VectorUpdate update) {
  for (FlatVector& slot : std::span(state_.vectors).subspan(own_)) {
    update.slots.push_back(slot.device().data());
  }
  Backend& backend = context_.backend;
  backend.Update(update, finite_.device().data());
  return IsFinite();
}

absl::StatusOr<bool> LocalTraining::Fits(double loss_sum, std::span<float> gradient) {
  if (!std::isfinite(loss_sum)) return false;
  return AllFinite(gradient);
}

absl::StatusOr<bool> LocalTraining::KnownFinite(std::span<float> device) {
  if (context_.backend.shares_host_memory()) return false;
  return AllFinite(device);
}

absl::StatusOr<bool> LocalTraining::AllFinite(std::span<float> vector) {
  context_.backend.Fill(1, 1.0f, finite_.device().data());
  context_.backend.Scale(vector.size(), 1.0f, vector.data(), finite_.device().data());
  return IsFinite();
}

absl::StatusOr<bool> LocalTraining::IsFinite() {
  RETURN_IF_ERROR(finite_.Down({0, 1}));
  return finite_.host()[0] != 0;
}

absl::Status LocalTraining::CheckVector(const char* what, std::span<const float> device) const {
  FloatBuffer values(device.size());
  Backend& backend = context_.backend;
  backend.CopyToHost(Stream::kCompute, device.data(), values.span());
  RETURN_IF_ERROR(backend.Await(backend.Record(Stream::kCompute)));
  return CheckFinite(context_.schema, what, 0, values.span());
}

absl::Status LocalTraining::WhatIsNotFinite(std::span<const float> local,
                                            std::span<const float> gradient) const {
  RETURN_IF_ERROR(CheckVector("the gradient", gradient));
  RETURN_IF_ERROR(CheckVector("the local weight", local));
  const auto names = optimizer_->slots();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string what = absl::StrCat("the local optimizer's ", std::string(names[i]));
    RETURN_IF_ERROR(CheckVector(what.c_str(), state_.vectors[own_ + i].device()));
  }
  return absl::InternalError("the local optimizer refuses a step although all values are finite");
}

void LocalTraining::Keep(uint64_t clock) {
  kept_.updates = state_.updates;
  kept_.counts = state_.counts;
  kept_.loss_scale = state_.loss_scale;
  for (size_t i = 0; i < state_.vectors.size(); ++i) {
    context_.backend.Copy(state_.vectors[i].size(), state_.vectors[i].device().data(),
                          kept_.vectors[i].device().data());
  }
  kept_clock_ = clock;
}

absl::StatusOr<std::string> LocalTraining::Save() const {
  KeptState state{.names = names_, .updates = kept_.updates, .vectors = {}, .counts = kept_.counts};
  if (scales_) state.loss_scale = kept_.loss_scale;
  for (const FlatVector& vector : kept_.vectors) {
    ASSIGN_OR_RETURN(state.vectors.emplace_back(), vector.Copy());
  }
  if (names_.residual) {
    FloatBuffer& residual = state.vectors.emplace_back(context_.schema.total());
    RETURN_IF_ERROR(context_.carrier.encoder()->Read(kept_clock_, residual.span()));
  }
  return SerializeState(state);
}

absl::Status LocalTraining::Load(const std::string& bytes) {
  KeptState state = KeptState::Zeros(names_, context_.schema.total(), kept_.counts.size());
  ASSIGN_OR_RETURN(loaded_, TakeUpState(bytes, context_.schema.total(), state));
  state_.updates = kept_.updates = state.updates;
  state_.counts = kept_.counts = state.counts;
  if (state.loss_scale) state_.loss_scale = kept_.loss_scale = *state.loss_scale;
  // If the state has no slots of the optimizer, the slots keep their values from before the first
  // step.
  const size_t known = state.updates == 0 ? own_ : state_.vectors.size();
  for (size_t i = 0; i < known; ++i) {
    RETURN_IF_ERROR(state_.vectors[i].Set(state.vectors[i].span()));
    RETURN_IF_ERROR(kept_.vectors[i].Set(state.vectors[i].span()));
  }
  if (!names_.residual) return absl::OkStatus();
  return context_.carrier.encoder()->Set(state.vectors.back().span());
}

}  // namespace leeway
