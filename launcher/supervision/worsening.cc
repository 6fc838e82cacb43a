#include "launcher/supervision/worsening.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/text/format.h"

namespace leeway {
namespace {

constexpr double kPoints = 0.10;
constexpr double kLossTimes = 1.5;
constexpr double kWayBack = 0.5;

bool IsBetter(const v1::EvaluationMetrics& a, const v1::EvaluationMetrics& b) {
  if (a.has_test_accuracy() && b.has_test_accuracy()) return a.test_accuracy() > b.test_accuracy();
  return a.test_loss() < b.test_loss() || std::isnan(b.test_loss());
}

bool IsMuchWorse(const v1::EvaluationMetrics& last, const v1::EvaluationMetrics& best,
                 const v1::EvaluationMetrics& first) {
  if (last.has_test_accuracy() && best.has_test_accuracy()) {
    return last.test_accuracy() < best.test_accuracy() - kPoints;
  }
  if (!std::isfinite(last.test_loss())) return std::isfinite(best.test_loss());
  return last.test_loss() > kLossTimes * best.test_loss() &&
         last.test_loss() - best.test_loss() > kWayBack * (first.test_loss() - best.test_loss());
}

}  // namespace

std::string MuchWorse(std::span<const v1::EvaluationMetrics> evaluations) {
  if (evaluations.empty()) return "";
  const v1::EvaluationMetrics& best =
      *std::max_element(evaluations.begin(), evaluations.end(),
                        [](const v1::EvaluationMetrics& a, const v1::EvaluationMetrics& b) {
                          return IsBetter(b, a);
                        });
  if (!IsMuchWorse(evaluations.back(), best, evaluations.front())) return "";
  return absl::StrCat(best.has_test_accuracy()
                          ? "test accuracy was " + Percent(best.test_accuracy())
                          : "test loss was " + LossInWords(best.test_loss()),
                      " at clock ", Thousands(best.clock()));
}

}  // namespace leeway
