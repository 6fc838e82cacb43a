// Plans the memory for the gradients of values in the backward pass: a few buffers that are reused.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "worker/model/graph.h"

namespace leeway {

// The index of a buffer.
using GradientBuffer = size_t;

// How the gradient of one input is computed.
struct InputGradient {
  // The buffer for the input's gradient. This is the output's buffer if the layer works in place,
  // or if the gradients of input and output are equal. Absent if the gradient is not needed.
  std::optional<GradientBuffer> to = std::nullopt;
  // The buffer that is copied to `to` before the step. It holds the output's gradient, which other
  // readers still need.
  std::optional<GradientBuffer> copy_of = std::nullopt;
  // The buffer that is added to `to` after the step. It holds the gradients from the input's other
  // readers.
  std::optional<GradientBuffer> add = std::nullopt;
};

struct GradientStep {
  size_t node = 0;
  // The buffer with the complete gradient of the node's output.
  GradientBuffer output = 0;
  // One entry for each input of the node.
  std::vector<InputGradient> inputs;
};

struct GradientPlan {
  // The steps in the order of the backward pass. Nodes are left out if neither they nor the nodes
  // before them have trained weights.
  std::vector<GradientStep> steps;
  // The size of each buffer, in floats for one example.
  std::vector<size_t> buffers;
  // The buffer for the gradient of the scores, which the loss writes.
  GradientBuffer scores = 0;
};

// Makes the plan. `in_place` says for each node whether its output overwrites its input.
GradientPlan PlanGradients(const Graph& graph, const std::vector<bool>& in_place);

}  // namespace leeway
