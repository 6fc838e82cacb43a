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

bool IsBetter(const Evaluated& a, const Evaluated& b) {
  if (a.accuracy.has_value() && b.accuracy.has_value()) return *a.accuracy > *b.accuracy;
  return a.loss < b.loss || std::isnan(b.loss);
}

bool IsMuchWorse(const Evaluated& last, const Evaluated& best, const Evaluated& first) {
  if (last.accuracy.has_value() && best.accuracy.has_value()) {
    return *last.accuracy < *best.accuracy - kPoints;
  }
  if (!std::isfinite(last.loss)) return std::isfinite(best.loss);
  return last.loss > kLossTimes * best.loss &&
         last.loss - best.loss > kWayBack * (first.loss - best.loss);
}

}  // namespace

std::string MuchWorse(std::span<const Evaluated> evaluations) {
  if (evaluations.empty()) return "";
  const Evaluated& best =
      *std::max_element(evaluations.begin(), evaluations.end(),
                        [](const Evaluated& a, const Evaluated& b) { return IsBetter(b, a); });
  if (!IsMuchWorse(evaluations.back(), best, evaluations.front())) return "";
  return absl::StrCat(best.accuracy ? "test accuracy was " + Percent(*best.accuracy)
                                    : "test loss was " + LossInWords(best.loss),
                      " at clock ", Thousands(best.clock));
}

}  // namespace leeway
