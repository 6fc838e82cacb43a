#include "worker/model/loss.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

absl::Status BadLabel(float label, size_t index, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("label ", label, " of example ", index, " of the batch is not ", wanted));
}

absl::Status CheckFlat(const ImageShape& output, size_t labels, absl::string_view loss) {
  if (labels > 1) {
    return absl::InvalidArgumentError(absl::StrCat("loss ", loss,
                                                   " takes one label an example, but the data has ",
                                                   labels, ": use loss softmax_cross_entropy"));
  }
  if (output.flat()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "loss ", loss, " wants one row of scores, but the last layer gives ", output.height, " x ",
      output.width, " x ", output.channels, ": end the layers with dense"));
}

absl::Status CheckOneScore(const ImageShape& output, size_t labels, absl::string_view loss) {
  RETURN_IF_ERROR(CheckFlat(output, labels, loss));
  if (output.channels == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("loss ", loss, " wants units 1, but the last ",
                                                 "layer gives ", output.channels, " scores"));
}

// Whether there are scores for each of an example's labels.
absl::Status CheckPositions(const ImageShape& output, size_t labels) {
  if (labels == 1) return CheckFlat(output, labels, "softmax_cross_entropy");
  if (size_t{output.height} * output.width == labels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "an example has ", labels, " labels, one for each position, but the last layer gives ",
      output.height, " x ", output.width, " x ", output.channels,
      ": end the layers with tied_dense, or with dense and pointwise: true"));
}

// -log softmax(scores)[label]; in training, of labels that are smoothed.
class SoftmaxCrossEntropyLoss final : public Loss {
 public:
  explicit SoftmaxCrossEntropyLoss(double smoothing) : smoothing_(static_cast<float>(smoothing)) {}

  absl::Status CheckOutput(const ImageShape& output, const LabelKind& labels) const override {
    RETURN_IF_ERROR(CheckPositions(output, labels.each));
    const uint32_t classes = labels.classes;
    if (classes == 0) {
      return absl::InvalidArgumentError(
          "loss softmax_cross_entropy wants class numbers as labels, but the data's are not: "
          "use loss squared");
    }
    if (output.channels >= classes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the last layer gives ", output.channels,
                                                   " scores, but the data has ", classes,
                                                   " classes"));
  }
  absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const override {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] >= 0 && labels[i] < static_cast<float>(units) &&
          labels[i] == std::floor(labels[i])) {
        continue;
      }
      return BadLabel(labels[i], i, absl::StrCat("a class from 0 to ", units - 1));
    }
    return absl::OkStatus();
  }
  void Compute(Backend& backend, size_t rows, uint32_t units, const float* scores,
               const float* labels, LossSum* sum, float* dscores) const override {
    const float smoothing = dscores == nullptr ? 0 : smoothing_;
    backend.SoftmaxCrossEntropy({rows, units, smoothing}, scores, labels, sum, dscores);
  }

 private:
  const float smoothing_;
};

// log(1 + exp(-score)) for label 1, log(1 + exp(score)) for 0 and -1.
class LogisticLoss final : public Loss {
 public:
  absl::Status CheckOutput(const ImageShape& output, const LabelKind& labels) const override {
    RETURN_IF_ERROR(CheckOneScore(output, labels.each, "logistic"));
    if (labels.classes <= 2) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("loss logistic wants two classes, but the data has ", labels.classes));
  }
  absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const override {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == 0 || labels[i] == 1 || labels[i] == -1) continue;
      return BadLabel(labels[i], i, "0, 1 or -1");
    }
    return absl::OkStatus();
  }
  void Compute(Backend& backend, size_t rows, uint32_t units, const float* scores,
               const float* labels, LossSum* sum, float* dscores) const override {
    backend.Logistic(rows, scores, labels, sum, dscores);
  }
};

// 1/2 (score - label)^2.
class SquaredLoss final : public Loss {
 public:
  bool is_regression() const override { return true; }
  absl::Status CheckOutput(const ImageShape& output, const LabelKind& labels) const override {
    return CheckOneScore(output, labels.each, "squared");
  }
  absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const override {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (!std::isfinite(labels[i])) return BadLabel(labels[i], i, "a finite number");
    }
    return absl::OkStatus();
  }
  void Compute(Backend& backend, size_t rows, uint32_t units, const float* scores,
               const float* labels, LossSum* sum, float* dscores) const override {
    backend.Squared(rows, scores, labels, sum, dscores);
  }
};

}  // namespace

std::unique_ptr<Loss> MakeLoss(const v1::Model& model) {
  switch (model.loss()) {
    case v1::LOSS_LOGISTIC:
      return std::make_unique<LogisticLoss>();
    case v1::LOSS_SQUARED:
      return std::make_unique<SquaredLoss>();
    case v1::LOSS_SOFTMAX_CROSS_ENTROPY:
      break;
  }
  return std::make_unique<SoftmaxCrossEntropyLoss>(model.label_smoothing());
}

}  // namespace leeway
