#include "launcher/inspect/statistics.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace leeway {
namespace {

constexpr double kClassesMax = 10000;

}  // namespace

void ValueSums::Add(std::span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t column = i % counts_.size();
    if (std::isnan(values[i])) {
      ++missing_;
      continue;
    }
    const double change = values[i] - means_[column];
    means_[column] += change / ++counts_[column];
    squares_[column] += change * (values[i] - means_[column]);
  }
}

ValueStatistics ValueSums::Statistics() const {
  ValueStatistics statistics{means_, {}, missing_};
  for (size_t i = 0; i < counts_.size(); ++i) {
    statistics.deviation.push_back(std::sqrt(squares_[i] / std::max(counts_[i], 1.0)));
  }
  return statistics;
}

ValueStatistics StatisticsOf(const Examples& examples) {
  const ImageShape& shape = examples.shape;
  ValueSums sums(shape.flat() ? shape.elements() : shape.channels);
  if (const auto* floats = std::get_if<std::vector<float>>(&examples.values)) {
    sums.Add(*floats);
    return sums.Statistics();
  }
  const auto& bytes = std::get<std::vector<uint8_t>>(examples.values);
  const size_t elements = shape.elements();
  std::vector<float> scaled(elements);
  for (size_t at = 0; at < bytes.size(); at += elements) {
    std::transform(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                   bytes.begin() + static_cast<std::ptrdiff_t>(at + elements), scaled.begin(),
                   [](uint8_t byte) { return static_cast<float>(byte) / 255; });
    sums.Add(scaled);
  }
  return sums.Statistics();
}

LabelStatistics StatisticsOf(std::span<const float> labels) {
  const auto [least, largest] = std::minmax_element(labels.begin(), labels.end());
  LabelStatistics statistics{*least, *largest, {}};
  const bool whole = std::all_of(labels.begin(), labels.end(),
                                 [](float label) { return label == std::floor(label); });
  if (!whole || *least < -1 || *largest >= kClassesMax) return statistics;
  statistics.counts.resize(static_cast<size_t>(*largest - *least) + 1);
  for (const float label : labels) ++statistics.counts[static_cast<size_t>(label - *least)];
  return statistics;
}

}  // namespace leeway
