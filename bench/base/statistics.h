// Medians and percentiles of what was measured.
#pragma once

#include <vector>

namespace leeway {

// The value below which `share` (0 to 1) of `values` lies, interpolated between neighbours; 0 if
// there are none.
double Percentile(std::vector<double> values, double share);
double Median(std::vector<double> values);

struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};
Percentiles PercentilesOf(const std::vector<double>& values);
// Each percentile's median over rounds.
Percentiles MedianOf(const std::vector<Percentiles>& rounds);

// Element by element a / b, for rounds that were measured next to each other: a machine that is
// slower for a while is slower for both. As many as the shorter one; 0 where b is 0.
std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace leeway
