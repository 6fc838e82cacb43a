// Statistics of examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/data/examples.h"

namespace leeway {

// The mean and standard deviation of each image channel or feature. Bytes are scaled first.
struct ValueStatistics {
  std::vector<double> mean;
  std::vector<double> deviation;
  uint64_t missing = 0;
};

// Adds up values in double precision, by Welford's method (1962).
class ValueSums {
 public:
  // The values of an example are for the `columns` channels or features in turn.
  explicit ValueSums(size_t columns) : counts_(columns), means_(columns), squares_(columns) {}
  // Adds values. The first value belongs to the first column. NaN counts as missing.
  void Add(std::span<const float> values);
  ValueStatistics Statistics() const;

 private:
  std::vector<double> counts_;
  std::vector<double> means_;
  std::vector<double> squares_;
  uint64_t missing_ = 0;
};

ValueStatistics StatisticsOf(const Examples& examples);

struct LabelStatistics {
  double least = 0;
  double largest = 0;
  // How often each label occurs, if all labels are whole numbers from -1 on, and few enough to be
  // classes; otherwise empty. counts[i] belongs to label i + least.
  std::vector<uint64_t> counts;
};

// Returns the statistics of `labels`, which must not be empty.
LabelStatistics StatisticsOf(std::span<const float> labels);

}  // namespace leeway
