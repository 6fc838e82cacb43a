// The amount of memory that a batch takes, by purpose.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace leeway {

// All sizes are in floats. The size of each piece is rounded up to the start of the next piece.
struct MemoryPlan {
  // For each layer, the size of its output and of what it keeps for the backward pass.
  std::vector<uint64_t> layers;
  // The size for all layers within a `recompute`, which use the memory one after the other.
  uint64_t recomputed = 0;
  // The size of the gradients of the activations.
  uint64_t gradients = 0;
  uint64_t scratch = 0;
  // The sizes of a device's copies of what the host has: examples and labels (`batch`), weights and
  // contribution (`vectors`).
  uint64_t batch = 0;
  uint64_t vectors = 0;

  uint64_t activations() const {
    return std::accumulate(layers.begin(), layers.end(), recomputed) + gradients + scratch;
  }
  uint64_t total() const { return activations() + batch + vectors; }
  // Returns the layer that takes the most memory, or the first such layer if several take the same.
  size_t largest_layer() const {
    return static_cast<size_t>(std::max_element(layers.begin(), layers.end()) - layers.begin());
  }
};

}  // namespace leeway
