// Computes medians and percentiles of measurements.
#pragma once

#include <vector>

namespace leeway {

// Returns the value below which the given share (0 to 1) of `values` is. Interpolates between
// neighbours. Returns 0 without values.
double Percentile(std::vector<double> values, double share);
double Median(std::vector<double> values);

struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};
Percentiles PercentilesOf(const std::vector<double>& values);
// Returns the median of each percentile over all rounds.
Percentiles MedianOf(const std::vector<Percentiles>& rounds);

// Returns a / b, element by element. Each pair of rounds was measured one right after the other, so
// a machine that is slow for a while slows both. The result is as long as the shorter vector, and
// has 0 where b is 0.
std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace leeway
