// Losses. Their sums are in double, and follow the order of the examples.
#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/softmax.h"
#include "worker/compute/score_rank.h"

namespace leeway {

namespace {

// Returns the loss of one row: log(total) + top - <target, row>, where `total` is the sum of
// exp(row - top).
double SmoothedLoss(const SoftmaxLossShape& shape, const float* row, size_t label, double total) {
  const double top = *std::max_element(row, row + shape.classes);
  double loss = std::log(total) - (1.0 - shape.smoothing) * (row[label] - top);
  if (shape.smoothing == 0) return loss;
  double sum = 0;
  for (size_t c = 0; c < shape.classes; ++c) sum += row[c] - top;
  return loss - shape.smoothing * sum / static_cast<double>(shape.classes);
}

}  // namespace

void EigenBackend::SoftmaxCrossEntropy(const SoftmaxLossShape& shape, const float* scores,
                                       const float* labels, LossSum* sum, float* dscores) {
  LossSum result;
  const size_t classes = shape.classes;
  const float share = 1.0f / static_cast<float>(shape.rows);
  const float spread = share * shape.smoothing / static_cast<float>(classes);
  std::vector<float> unwanted(dscores == nullptr ? classes : 0);
  for (size_t i = 0; i < shape.rows; ++i) {
    const float* row = scores + i * classes;
    const auto label = static_cast<size_t>(labels[i]);
    float* powers = dscores == nullptr ? unwanted.data() : dscores + i * classes;
    const double total = ExpRow(classes, 1.0f, row, powers);
    result.loss += SmoothedLoss(shape, row, label, total);
    result.correct += static_cast<size_t>(std::max_element(row, row + classes) - row) == label;
    if (dscores == nullptr) {
      result.in_top5 += ScoreRank(classes, row, label) < 5;
      continue;
    }
    const auto factor = static_cast<float>(share / total);
    for (size_t c = 0; c < classes; ++c) powers[c] = powers[c] * factor - spread;
    powers[label] -= share - share * shape.smoothing;
  }
  *sum = result;
}

void EigenBackend::Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                            float* dscores) {
  LossSum result;
  for (size_t i = 0; i < batch; ++i) {
    const double score = scores[i];
    const double label = labels[i] > 0 ? 1.0 : 0.0;
    // Computes log(1 + e^score) - label * score without overflow.
    const double tail = std::exp(-std::abs(score));
    result.loss += std::max(score, 0.0) - label * score + std::log1p(tail);
    result.correct += (score > 0) == (label > 0);
    if (dscores == nullptr) continue;
    const double probability = (score > 0 ? 1.0 : tail) / (1.0 + tail);
    dscores[i] = static_cast<float>((probability - label) / static_cast<double>(batch));
  }
  *sum = result;
}

void EigenBackend::Squared(size_t batch, const float* scores, const float* labels, LossSum* sum,
                           float* dscores) {
  LossSum result;
  for (size_t i = 0; i < batch; ++i) {
    const double error = static_cast<double>(scores[i]) - labels[i];
    result.loss += 0.5 * error * error;
    if (dscores != nullptr) dscores[i] = static_cast<float>(error / static_cast<double>(batch));
  }
  *sum = result;
}

}  // namespace leeway
