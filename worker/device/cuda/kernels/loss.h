// Losses. A thread computes the losses and gradients of a few examples. Other threads then sum the
// losses in groups, in double and in the order of the examples.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/host_device.h"
#include "worker/compute/backend.h"

namespace leeway::cuda {

// Sets sums[i] to the loss of examples [i * each, (i + 1) * each).
template <typename Loss>
struct ExampleLosses {
  size_t batch;
  size_t each;
  Loss loss;
  LossSum* sums;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t end = (i + 1) * each < batch ? (i + 1) * each : batch;
    LossSum sum;
    for (size_t example = i * each; example < end; ++example) loss(example, sum);
    sums[i] = sum;
  }
};

// Sets out[i] to the sum of in[i * each] to in[(i + 1) * each - 1]. If only one thread runs, `out`
// may overlap the values of `in` that the thread reads.
struct LossGroups {
  size_t count;
  size_t each;
  const LossSum* in;
  LossSum* out;
  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t end = (i + 1) * each < count ? (i + 1) * each : count;
    LossSum sum;
    for (size_t at = i * each; at < end; ++at) {
      sum.loss += in[at].loss;
      sum.correct += in[at].correct;
      sum.in_top5 += in[at].in_top5;
    }
    out[i] = sum;
  }
};

struct CrossEntropyLoss {
  size_t classes;
  float share;
  float smoothing;
  const float* scores;
  const float* labels;
  // The gradient of the scores. Null if it is not needed.
  float* dscores;

  LEEWAY_HOST_DEVICE void operator()(size_t example, LossSum& sum) const {
    const float* row = scores + example * classes;
    const auto label = static_cast<size_t>(labels[example]);
    size_t best = 0;
    for (size_t c = 1; c < classes; ++c) best = row[best] < row[c] ? c : best;
    double total = 0;
    double scores_above = 0;
    size_t before = 0;
    for (size_t c = 0; c < classes; ++c) {
      total += expf(row[c] - row[best]);
      scores_above += row[c] - row[best];
      before += row[c] > row[label] || (c < label && row[c] == row[label]) ? 1 : 0;
    }
    sum.loss += log(total) - (1.0 - smoothing) * (row[label] - row[best]);
    if (smoothing != 0) sum.loss -= smoothing * scores_above / static_cast<double>(classes);
    sum.correct += best == label ? 1 : 0;
    if (dscores == nullptr) sum.in_top5 += before < 5 ? 1 : 0;
    if (dscores != nullptr) Slopes(row, row[best], total, label, dscores + example * classes);
  }

 private:
  LEEWAY_HOST_DEVICE void Slopes(const float* row, float top, double total, size_t label,
                                 float* slopes) const {
    const auto factor = static_cast<float>(share / total);
    const float spread = share * smoothing / static_cast<float>(classes);
    for (size_t c = 0; c < classes; ++c) slopes[c] = expf(row[c] - top) * factor - spread;
    slopes[label] -= share - share * smoothing;
  }
};

struct LogisticLoss {
  size_t batch;
  const float* scores;
  const float* labels;
  float* dscores;

  LEEWAY_HOST_DEVICE void operator()(size_t example, LossSum& sum) const {
    const double score = scores[example];
    const double label = labels[example] > 0 ? 1.0 : 0.0;
    // Computes log(1 + e^score) - label * score without overflow.
    const double tail = exp(-fabs(score));
    sum.loss += (score < 0.0 ? 0.0 : score) - label * score + log1p(tail);
    sum.correct += (score > 0) == (label > 0) ? 1 : 0;
    if (dscores == nullptr) return;
    const double probability = (score > 0 ? 1.0 : tail) / (1.0 + tail);
    dscores[example] = static_cast<float>((probability - label) / static_cast<double>(batch));
  }
};

struct SquaredLoss {
  size_t batch;
  const float* scores;
  const float* labels;
  float* dscores;

  LEEWAY_HOST_DEVICE void operator()(size_t example, LossSum& sum) const {
    const double error = static_cast<double>(scores[example]) - labels[example];
    sum.loss += 0.5 * error * error;
    if (dscores == nullptr) return;
    dscores[example] = static_cast<float>(error / static_cast<double>(batch));
  }
};

}  // namespace leeway::cuda
