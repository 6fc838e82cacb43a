// Lion's arithmetic (Chen et al. 2023, arXiv:2302.06675, algorithm 2), for servers and devices.
#pragma once

#include "common/host_device.h"
#include "common/update/rule.h"

namespace leeway {

struct LionFactors {
  LionFactors() = default;
  LionFactors(double beta1, double beta2, const UpdateStep& step)
      : beta1(static_cast<float>(beta1)),
        rest1(static_cast<float>(1 - beta1)),
        beta2(static_cast<float>(beta2)),
        rest2(static_cast<float>(1 - beta2)),
        rate(step.learning_rate) {}

  // Returns the next m.
  LEEWAY_HOST_DEVICE float First(float m, float g) const { return beta2 * m + rest2 * g; }
  // Returns the weight after its decay and a move by the sign of a mean of g and m. `m` is the
  // value before this step.
  LEEWAY_HOST_DEVICE float Moved(float weight, float m, float g) const {
    const float c = beta1 * m + rest1 * g;
    const float sign = c > 0 ? 1.0f : (c < 0 ? -1.0f : 0.0f);
    return weight - rate * sign;
  }

  float beta1 = 0, rest1 = 0, beta2 = 0, rest2 = 0, rate = 0;
};

}  // namespace leeway
