// Losses: sums in double, in the order of the examples.
#include <algorithm>
#include <cmath>

#include "worker/compute/eigen/eigen_backend.h"

namespace leeway {

void EigenBackend::SoftmaxCrossEntropy(size_t batch, size_t classes, const float* scores,
                                       const float* labels, LossSum* sum, float* dscores) {
  LossSum result;
  const float share = 1.0f / static_cast<float>(batch);
  for (size_t i = 0; i < batch; ++i) {
    const float* row = scores + i * classes;
    const auto label = static_cast<size_t>(labels[i]);
    const size_t best = std::max_element(row, row + classes) - row;
    double total = 0;
    for (size_t c = 0; c < classes; ++c) {
      const float power = std::exp(row[c] - row[best]);
      if (dscores != nullptr) dscores[i * classes + c] = power;
      total += power;
    }
    result.loss += std::log(total) - (row[label] - row[best]);
    result.correct += best == label;
    if (dscores == nullptr) continue;
    const auto factor = static_cast<float>(share / total);
    for (size_t c = 0; c < classes; ++c) dscores[i * classes + c] *= factor;
    dscores[i * classes + label] -= share;
  }
  *sum = result;
}

void EigenBackend::Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                            float* dscores) {
  LossSum result;
  for (size_t i = 0; i < batch; ++i) {
    const double score = scores[i];
    const double label = labels[i] > 0 ? 1.0 : 0.0;
    // log(1 + e^score) - label * score, without overflow.
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
