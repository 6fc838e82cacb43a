// The error of predicted numbers, summed example by example.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace leeway {

// Except for the rounding of doubles, the result does not depend on how examples are divided into
// batches. The labels' variance is summed about their running mean (Welford 1962; merged as in
// Chan, Golub and LeVeque 1979), so that large labels with small differences do not cancel out.
class RegressionError {
 public:
  void Add(double prediction, double label) {
    const double error = prediction - label;
    absolute_ += std::abs(error);
    squared_ += error * error;
    ++count_;
    const double from_mean = label - mean_;
    mean_ += from_mean / static_cast<double>(count_);
    deviation_ += from_mean * (label - mean_);
  }
  void Add(const RegressionError& other) {
    if (other.count_ == 0) return;
    const auto mine = static_cast<double>(count_), others = static_cast<double>(other.count_);
    const double apart = other.mean_ - mean_;
    deviation_ += other.deviation_ + apart * apart * mine * others / (mine + others);
    mean_ += apart * others / (mine + others);
    absolute_ += other.absolute_;
    squared_ += other.squared_;
    count_ += other.count_;
  }

  // Returns the mean absolute error. Absent if there are no examples.
  std::optional<double> mae() const {
    if (count_ == 0) return std::nullopt;
    return absolute_ / static_cast<double>(count_);
  }
  // Returns 1 - squared errors / squared deviations of the labels from their mean. Absent if all
  // labels are the same.
  std::optional<double> r2() const {
    if (!(deviation_ > 0)) return std::nullopt;
    return 1 - squared_ / deviation_;
  }

 private:
  uint64_t count_ = 0;
  double absolute_ = 0;
  double squared_ = 0;
  // The mean of the labels, and the sum of their squared deviations from it.
  double mean_ = 0;
  double deviation_ = 0;
};

}  // namespace leeway
