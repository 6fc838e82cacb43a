#include "worker/model/label_checks.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {

absl::Status CheckFlat(const ImageShape& output, size_t labels, absl::string_view loss) {
  if (labels > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(loss, " requires one label for each example, but the data has ", labels,
                     ": use loss softmax_cross_entropy"));
  }
  if (output.flat()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(loss, " requires one row of scores, but the last layer computes ", output.height,
                   " x ", output.width, " x ", output.channels, ": end the layers with dense"));
}

absl::Status CheckOneScore(const ImageShape& output, size_t labels, absl::string_view loss) {
  RETURN_IF_ERROR(CheckFlat(output, labels, loss));
  if (output.channels == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      loss, " requires units 1, but the last layer computes ", output.channels, " scores"));
}

absl::Status CheckPositions(const ImageShape& output, const LabelKind& labels,
                            absl::string_view loss) {
  if (labels.each > 1 && size_t{output.height} * output.width != labels.each) {
    return absl::InvalidArgumentError(
        absl::StrCat("an example has ", labels.each,
                     " labels, one for each position, but the last layer computes ", output.height,
                     " x ", output.width, " x ", output.channels,
                     ": end the layers with tied_dense, or with dense and pointwise: true"));
  }
  if (labels.each == 1) RETURN_IF_ERROR(CheckFlat(output, labels.each, loss));
  if (labels.classes > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(loss,
                   " requires class numbers as labels, but the data's labels are not classes: use "
                   "loss squared"));
}

absl::Status BadLabel(float label, size_t index, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("label ", label, " of example ", index, " of the batch is not ", wanted));
}

absl::Status CheckClasses(std::span<const float> labels, uint32_t units) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < static_cast<float>(units) &&
        labels[i] == std::floor(labels[i])) {
      continue;
    }
    return BadLabel(labels[i], i, absl::StrCat("a class from 0 to ", units - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(std::span<const float> labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!std::isfinite(labels[i])) return BadLabel(labels[i], i, "a finite number");
  }
  return absl::OkStatus();
}

}  // namespace leeway
