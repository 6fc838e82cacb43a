// Decides whether a run has learned anything. The run's model must be better than the best model
// that ignores the input.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "leeway/v1/job.pb.h"
#include "run/summary.h"

namespace leeway {

struct Score {
  // The mean loss over the examples.
  double loss = 0;
  // The share of examples with the right class. Absent for a squared loss.
  std::optional<double> accuracy;
};

// Returns the score of the best constant prediction for these labels. For classes it predicts their
// shares: the loss is the entropy of the shares, and the accuracy is the most frequent class's
// share. For a squared loss it predicts the mean, and the loss is half of the variance. `labels`
// must not be empty and must fit the loss.
Score BestConstant(v1::Loss loss, std::span<const float> labels);

struct Tested {
  Score model;
  Score constant;
  uint64_t examples = 0;
};

// Decides whether a model has learned. A model has learned if its loss is at least 1 % below the
// loss of the best constant, or if its accuracy is above the constant's by more than three standard
// deviations of chance. A run whose weights or loss are not finite has not learned. If the
// magnitude of a weight exceeds 1e9, only the condition on the loss counts.
Learning JudgeLearning(const std::optional<Tested>& tested, std::span<const float> weights);

}  // namespace leeway
