#include "worker/data/labels.h"

#include <cmath>

#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "worker/data/limits.h"

namespace leeway {

LabelRule LabelRule::OfJob(const v1::TrainingJob& job) {
  LabelRule rule(LabelLoss(job.model()));
  const auto& layers = job.model().layers();
  const bool classes = rule.loss == v1::LOSS_SOFTMAX_CROSS_ENTROPY && !layers.empty() &&
                       layers.rbegin()->has_dense();
  if (!classes) return rule;
  rule.classes = layers.rbegin()->dense().units();
  rule.layer = layers.size() - 1;
  return rule;
}

uint32_t ClassesOf(v1::Loss loss, uint32_t labels) {
  if (loss == v1::LOSS_SQUARED) return 0;
  return loss == v1::LOSS_LOGISTIC ? 2 : labels;
}

absl::StatusOr<float> CheckLabel(double label, const LabelRule& rule) {
  const auto refuse = [&](absl::string_view wanted) {
    return absl::InvalidArgumentError(absl::StrCat("label ", label, ": ", wanted));
  };
  switch (rule.loss) {
    case v1::LOSS_SOFTMAX_CROSS_ENTROPY:
      if (!(label >= 0 && label < kMaxClasses && label == std::floor(label))) {
        return refuse("softmax_cross_entropy accepts class numbers from 0");
      }
      if (rule.classes > 0 && label >= rule.classes) {
        return refuse(absl::StrCat("model.layers.", rule.layer, ".dense.units is ", rule.classes,
                                   ", which gives scores for the classes 0 to ", rule.classes - 1));
      }
      break;
    case v1::LOSS_LOGISTIC:
      if (label == -1) return 0.0f;
      if (label != 0 && label != 1) return refuse("logistic accepts 0 and 1, or -1 and 1");
      break;
    // LabelLoss never returns LOSS_CUSTOM.
    case v1::LOSS_CUSTOM:
    case v1::LOSS_SQUARED:
      if (!std::isfinite(static_cast<float>(label))) return refuse("squared needs a finite float");
      break;
  }
  return static_cast<float>(label);
}

absl::StatusOr<float> LabelReader::Read(double label) {
  ASSIGN_OR_RETURN(const float checked, CheckLabel(label, rule_));
  if (rule_.loss != v1::LOSS_LOGISTIC || label == 1) return checked;
  const int negative = static_cast<int>(label);
  if (negative_.value_or(negative) != negative) {
    return absl::InvalidArgumentError(absl::StrCat(
        "label ", label, ": logistic accepts 0 and 1, or -1 and 1, but an earlier label is ",
        *negative_, "; for three classes use softmax_cross_entropy and the labels 0, 1, 2"));
  }
  negative_ = negative;
  return checked;
}

}  // namespace leeway
