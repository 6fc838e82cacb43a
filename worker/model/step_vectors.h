// The two flat vectors of a training step, and how its loss is scaled.
#pragma once

#include <span>

namespace leeway {

// Says whether the vectors are in the host's or in the device's memory. If the device works in the
// host's memory, both values mean the same.
enum class Home { kHost, kDevice };

// The weights and the contribution of a step. Both are whole vectors.
struct StepVectors {
  std::span<const float> weights;
  std::span<float> contribution;
  // If kHost, the weights are copied to a device and the contribution is copied back, range by
  // range. If kDevice, both vectors are on the device already, and nothing is copied.
  Home home = Home::kHost;
  // A power of two. The backward pass computes the gradient of the loss times this factor, so that
  // small gradients stay in the range of fp16. Afterwards the contribution is divided by the
  // factor.
  float loss_scale = 1;
};

}  // namespace leeway
