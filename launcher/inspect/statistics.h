// Figures of examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/data/examples.h"

namespace leeway {

// Mean and deviation of each channel of images, or of each feature, of bytes as they are scaled.
struct ValueStatistics {
  std::vector<double> mean;
  std::vector<double> deviation;
  uint64_t missing = 0;
};

// Adds values up, in double precision by Welford's method (1962).
class ValueSums {
 public:
  // Of examples whose values belong to `columns` channels or features in turn.
  explicit ValueSums(size_t columns) : counts_(columns), means_(columns), squares_(columns) {}
  // NaN is missing. `values` begins with the first column.
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
  // How often each label is there, if all are whole numbers from -1 on and few enough to be
  // classes; else empty. Number i is label i + least.
  std::vector<uint64_t> counts;
};

// `labels` is not empty.
LabelStatistics StatisticsOf(std::span<const float> labels);

}  // namespace leeway
