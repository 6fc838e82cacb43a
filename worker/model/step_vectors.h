// The two flat vectors of a training step, and how its loss is scaled.
#pragma once

#include <span>

namespace leeway {

// Whose memory vectors are. One and the same where the device works in the host's memory.
enum class Home { kHost, kDevice };

// Both are whole.
struct StepVectors {
  std::span<const float> weights;
  std::span<float> contribution;
  // kHost: weights go up to a device and the contribution comes down, range by range. kDevice: they
  // are where they are used, and nothing travels.
  Home home = Home::kHost;
  // A power of two. The backward pass computes the gradient of the loss times this, so that small
  // gradients stay in the range of fp16, and the contribution is divided by it again.
  float loss_scale = 1;
};

}  // namespace leeway
