#include "bench/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leeway {
namespace {

double OfSorted(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - std::floor(place);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

}  // namespace

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return OfSorted(values, share);
}

double Median(std::vector<double> values) { return Percentile(std::move(values), 0.5); }

Percentiles PercentilesOf(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  return {.p50 = OfSorted(sorted, 0.5),
          .p90 = OfSorted(sorted, 0.9),
          .p99 = OfSorted(sorted, 0.99),
          .max = OfSorted(sorted, 1)};
}

Percentiles MedianOf(const std::vector<Percentiles>& rounds) {
  const auto median = [&](double Percentiles::*which) {
    std::vector<double> values;
    for (const Percentiles& round : rounds) values.push_back(round.*which);
    return Median(std::move(values));
  };
  return {.p50 = median(&Percentiles::p50),
          .p90 = median(&Percentiles::p90),
          .p99 = median(&Percentiles::p99),
          .max = median(&Percentiles::max)};
}

std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios(std::min(a.size(), b.size()));
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = b[i] == 0 ? 0 : a[i] / b[i];
  return ratios;
}

}  // namespace leeway
