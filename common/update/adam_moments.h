// What Adam and AdamW share (Kingma and Ba 2015, algorithm 1).
#pragma once

#include <cmath>

#include "common/host_device.h"
#include "common/update/rule.h"

namespace leeway {

// The factors of one update. Bias correction is folded into two of them, computed in double:
//   rate m^ / (sqrt(v^) + epsilon) = size m / (scale sqrt(v) + epsilon)
struct AdamFactors {
  AdamFactors() = default;
  AdamFactors(double beta1, double beta2, double epsilon, const UpdateStep& step)
      : beta1(static_cast<float>(beta1)),
        rest1(static_cast<float>(1 - beta1)),
        beta2(static_cast<float>(beta2)),
        rest2(static_cast<float>(1 - beta2)),
        epsilon(static_cast<float>(epsilon)) {
    UpdateStep prepared = step;
    if (prepared.correction1 == 0) Prepare(beta1, beta2, prepared);
    size = static_cast<float>(step.learning_rate / prepared.correction1);
    scale = static_cast<float>(1 / std::sqrt(prepared.correction2));
  }

  static void Prepare(double beta1, double beta2, UpdateStep& step) {
    const auto t = static_cast<double>(step.number);
    step.correction1 = 1 - std::pow(beta1, t);
    step.correction2 = 1 - std::pow(beta2, t);
  }

  LEEWAY_HOST_DEVICE float First(float m, float g) const { return beta1 * m + rest1 * g; }
  LEEWAY_HOST_DEVICE float Second(float v, float g) const { return beta2 * v + rest2 * g * g; }
  LEEWAY_HOST_DEVICE float Move(float m, float v) const {
    return size * m / (scale * std::sqrt(v) + epsilon);
  }

  // Sets the step's corrections so that no bias is corrected.
  static void PrepareUncorrected(UpdateStep& step) { step.correction1 = step.correction2 = 1; }

  float beta1 = 0, rest1 = 0, beta2 = 0, rest2 = 0, epsilon = 0, size = 0, scale = 0;
};

}  // namespace leeway
