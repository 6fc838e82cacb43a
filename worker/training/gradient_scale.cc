#include "worker/training/gradient_scale.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/training/steps.h"

namespace leeway {

GradientScale::GradientScale(const RunnerContext& context)
    : context_(context), active_(ScalesLoss(context.job)) {
  for (const v1::LossScale& known : context.loss_scales) {
    history_.Add({known.clock(), std::min(known.log2(), kLossScaleMost)});
  }
}

float GradientScale::At(uint64_t clock) const {
  return active_ ? LossScaleOf(history_.At(clock)) : 1;
}

absl::StatusOr<std::optional<std::string>> GradientScale::Overflow(
    uint64_t clock, std::span<const float> contribution, ClockReport& report) {
  if (!active_) return std::nullopt;
  const float scale = At(clock);
  report.loss_scale = At(clock + 1);
  if (scale == 1) return std::nullopt;
  std::string what = report.bad_loss;
  if (what.empty()) what = NotFinite(context_.schema, "the gradient", 0, contribution);
  if (what.empty()) return std::nullopt;
  const LossScaleHistory::Entry next = history_.Halve(clock);
  if (context_.report_loss_scale) {
    v1::LossScale entry;
    entry.set_clock(next.clock);
    entry.set_log2(next.log2);
    RETURN_IF_ERROR(context_.report_loss_scale(entry));
  }
  report.loss_scale = At(next.clock);
  report.overflowed_steps = report.steps;
  return absl::StrCat(what, " at a loss scale of ", scale,
                      " (workers.precision: fp16); from now on ", report.loss_scale);
}

}  // namespace leeway
