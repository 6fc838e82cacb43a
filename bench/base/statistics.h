// Medians and percentiles of what was measured.
#pragma once

#include <vector>

namespace leeway {

// The value below which `share` (0 to 1) of `values` are, interpolated between neighbours. 0
// without values.
double Percentile(std::vector<double> values, double share);
double Median(std::vector<double> values);

struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};
Percentiles PercentilesOf(const std::vector<double>& values);
// The median over rounds of each percentile.
Percentiles MedianOf(const std::vector<Percentiles>& rounds);

// a / b, element by element, for rounds that were measured next to each other: if the machine is
// slower for a while, it is slower for both. The result is as long as the shorter vector, and has 0
// where b is 0.
std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace leeway
