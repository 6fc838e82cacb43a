#include "launcher/finish/learning.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/text/format.h"

namespace leeway {
namespace {

constexpr double kLossShare = 0.99;
constexpr double kDeviations = 3;
// The largest weight of a model that has not diverged. Floats of this size are 64 apart, so no
// usual update changes them.
constexpr double kWeightMax = 1e9;

constexpr char kAdvice[] = "; lower the learning rate, or give its schedule a warm_up";

Score BestNumber(std::span<const float> labels) {
  const auto count = static_cast<double>(labels.size());
  double mean = 0, squares = 0;
  for (const float label : labels) mean += label / count;
  for (const float label : labels) squares += (label - mean) * (label - mean);
  return {.loss = squares / count / 2, .accuracy = {}};
}

// Returns the largest magnitude of the weights, or infinity if any weight is not finite.
double Largest(std::span<const float> weights) {
  double largest = 0;
  for (const float weight : weights) {
    if (!std::isfinite(weight)) return INFINITY;
    largest = std::max(largest, std::abs(static_cast<double>(weight)));
  }
  return largest;
}

// Returns the accuracy that a model must exceed to count as better than chance. By chance alone an
// accuracy is that high once in about 700 runs.
double Beyond(double chance, uint64_t examples) {
  return chance + kDeviations * std::sqrt(chance * (1 - chance) / static_cast<double>(examples));
}

bool LowerLoss(const Tested& tested) {
  return tested.model.loss < kLossShare * tested.constant.loss;
}

bool Better(const Tested& tested) {
  if (LowerLoss(tested)) return true;
  return tested.model.accuracy.has_value() &&
         *tested.model.accuracy > Beyond(*tested.constant.accuracy, tested.examples);
}

std::string NoBetter(const Tested& tested) {
  const std::string loss =
      absl::StrFormat("test loss %.4g is not 1 %% below the %.4g of always predicting ",
                      tested.model.loss, tested.constant.loss);
  if (!tested.model.accuracy.has_value()) return absl::StrCat(loss, "the mean");
  return absl::StrCat("test accuracy ", Percent(*tested.model.accuracy),
                      " is not above chance (the most frequent class has ",
                      Percent(*tested.constant.accuracy), " of the examples), and ", loss,
                      "the classes' shares");
}

std::string WhyNot(const std::optional<Tested>& tested, double largest) {
  if (!std::isfinite(largest)) return "some weights are not finite";
  if (tested && !std::isfinite(tested->model.loss)) return "the test loss is not finite";
  if (largest > kWeightMax && !(tested && LowerLoss(*tested))) {
    return absl::StrFormat("training has diverged, the largest weight is %.1e", largest);
  }
  return tested && !Better(*tested) ? NoBetter(*tested) : "";
}

}  // namespace

Score BestConstant(v1::Loss loss, std::span<const float> labels) {
  if (loss == v1::LOSS_SQUARED) return BestNumber(labels);
  std::map<float, size_t> counts;
  // A logistic loss treats 0 and -1 as the same class.
  for (const float label : labels) ++counts[loss == v1::LOSS_LOGISTIC ? label > 0 : label];
  double entropy = 0, most = 0;
  for (const auto& [label, count] : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(labels.size());
    entropy -= share * std::log(share);
    most = std::max(most, share);
  }
  return {.loss = entropy, .accuracy = most};
}

Learning JudgeLearning(const std::optional<Tested>& tested, std::span<const float> weights) {
  // If all labels are the same, the test cannot show whether the model has learned.
  const std::optional<Tested> telling = tested && tested->constant.loss > 0 ? tested : std::nullopt;
  const std::string why = WhyNot(telling, Largest(weights));
  if (!why.empty()) return {false, absl::StrCat("this run has learned nothing: ", why, kAdvice)};
  return {telling ? std::optional<bool>(true) : std::nullopt, ""};
}

}  // namespace leeway
