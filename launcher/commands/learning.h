// Whether a run has learned anything: its model must beat the best one that does not look at the
// input.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "leeway/v1/job.pb.h"

namespace leeway {

struct Score {
  // Mean over the examples.
  double loss = 0;
  // Share of right classes; absent for a squared loss.
  std::optional<double> accuracy;
};

// Of the best constant prediction for these labels: the classes' shares (their entropy; the most
// frequent class), or the mean (half of the variance). `labels` are not empty, and fit the loss.
Score BestConstant(v1::Loss loss, std::span<const float> labels);

struct Tested {
  Score model;
  Score constant;
  uint64_t examples = 0;
};

struct Learning {
  // Nothing if it cannot be told: there are no test data, all their labels are the same, or the
  // loss is a plugin's.
  std::optional<bool> learned;
  // Where it is false: why, for a person.
  std::string why;
};

// A model has learned if its loss is at least 1 % below that of the best constant, or if its
// accuracy is above the constant's by more than three standard deviations of what the constant gets
// right by chance. A run whose weights or loss are not finite has not learned. Nor has a run with
// weights beyond 1e9 whose loss is no lower, whatever its accuracy is.
Learning JudgeLearning(const std::optional<Tested>& tested, std::span<const float> weights);

}  // namespace leeway
