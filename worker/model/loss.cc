#include "worker/model/loss.h"

#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/model/custom_loss.h"
#include "worker/model/label_checks.h"

namespace leeway {
namespace {

// The loss is -log softmax(scores)[label]. In training the labels may be smoothed.
class SoftmaxCrossEntropyLoss final : public Loss {
 public:
  explicit SoftmaxCrossEntropyLoss(double smoothing) : smoothing_(static_cast<float>(smoothing)) {}

  absl::Status CheckOutput(const ImageShape& output, const LabelKind& labels) const override {
    RETURN_IF_ERROR(CheckPositions(output, labels, "loss softmax_cross_entropy"));
    const uint32_t classes = labels.classes;
    if (output.channels >= classes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the last layer computes ", output.channels,
                                                   " scores, but the data has ", classes,
                                                   " classes"));
  }
  absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const override {
    return CheckClasses(labels, units);
  }
  absl::Status Compute(Backend& backend, size_t rows, uint32_t units, const float* scores,
                       const float* labels, LossSum* sum, float* dscores) const override {
    const float smoothing = dscores == nullptr ? 0 : smoothing_;
    backend.SoftmaxCrossEntropy({rows, units, smoothing}, scores, labels, sum, dscores);
    return absl::OkStatus();
  }

 private:
  const float smoothing_;
};

// The loss is log(1 + exp(-score)) for label 1, and log(1 + exp(score)) for labels 0 and -1.
class LogisticLoss final : public Loss {
 public:
  absl::Status CheckOutput(const ImageShape& output, const LabelKind& labels) const override {
    RETURN_IF_ERROR(CheckOneScore(output, labels.each, "loss logistic"));
    if (labels.classes <= 2) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("loss logistic requires two classes, but the data has ", labels.classes));
  }
  absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const override {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == 0 || labels[i] == 1 || labels[i] == -1) continue;
      return BadLabel(labels[i], i, "0, 1 or -1");
    }
    return absl::OkStatus();
  }
  absl::Status Compute(Backend& backend, size_t rows, uint32_t units, const float* scores,
                       const float* labels, LossSum* sum, float* dscores) const override {
    backend.Logistic(rows, scores, labels, sum, dscores);
    return absl::OkStatus();
  }
};

// The loss is 1/2 (score - label)^2.
class SquaredLoss final : public Loss {
 public:
  bool is_regression() const override { return true; }
  absl::Status CheckOutput(const ImageShape& output, const LabelKind& labels) const override {
    return CheckOneScore(output, labels.each, "loss squared");
  }
  absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const override {
    return CheckNumbers(labels);
  }
  absl::Status Compute(Backend& backend, size_t rows, uint32_t units, const float* scores,
                       const float* labels, LossSum* sum, float* dscores) const override {
    backend.Squared(rows, scores, labels, sum, dscores);
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Loss>> MakeLoss(const v1::Model& model, const Plugins& plugins) {
  switch (model.loss()) {
    case v1::LOSS_LOGISTIC:
      return std::make_unique<LogisticLoss>();
    case v1::LOSS_SQUARED:
      return std::make_unique<SquaredLoss>();
    case v1::LOSS_CUSTOM: {
      auto loss = MakeCustomLoss(model.custom_loss(), plugins);
      if (!loss.ok()) return AtKey(loss.status(), "model.custom_loss");
      return loss;
    }
    case v1::LOSS_SOFTMAX_CROSS_ENTROPY:
      break;
  }
  return std::make_unique<SoftmaxCrossEntropyLoss>(model.label_smoothing());
}

}  // namespace leeway
