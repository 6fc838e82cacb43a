// What a batch takes in memory, and what for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace leeway {

// In floats, each piece rounded up to where the next one begins.
struct MemoryPlan {
  // By layer: its output, and what it keeps for the backward pass.
  std::vector<uint64_t> layers;
  // What layers within a recompute have instead: all of these take turns with it.
  uint64_t recomputed = 0;
  // Of the activations.
  uint64_t gradients = 0;
  uint64_t scratch = 0;
  // A device's copies of what the host has: examples and labels, weights and contribution.
  uint64_t batch = 0;
  uint64_t vectors = 0;

  uint64_t activations() const {
    return std::accumulate(layers.begin(), layers.end(), recomputed) + gradients + scratch;
  }
  uint64_t total() const { return activations() + batch + vectors; }
  // Which layer takes most; the first of equals.
  size_t largest_layer() const {
    return static_cast<size_t>(std::max_element(layers.begin(), layers.end()) - layers.begin());
  }
};

}  // namespace leeway
