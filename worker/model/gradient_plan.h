// Plans where the gradients of values are during the backward pass: in a few buffers that are
// reused.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "worker/model/graph.h"

namespace leeway {

// The number of a buffer.
using GradientBuffer = size_t;

// How the gradient of one input is computed.
struct InputGradient {
  // The buffer that gets it. This is the output's buffer if the layer works in place, or if the two
  // gradients are equal. Absent: the gradient is not needed.
  std::optional<GradientBuffer> to = std::nullopt;
  // Before the step: `to` becomes a copy of this buffer, the output's gradient, because others
  // still read it.
  std::optional<GradientBuffer> copy_of = std::nullopt;
  // After the step: this buffer is added to `to`. It holds the gradients from the input's other
  // readers.
  std::optional<GradientBuffer> add = std::nullopt;
};

// One step of the backward pass.
struct GradientStep {
  size_t node = 0;
  // The buffer with the complete gradient of the node's output.
  GradientBuffer output = 0;
  // By input.
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

// `in_place` says for each node whether its output overwrites its input.
GradientPlan PlanGradients(const Graph& graph, const std::vector<bool>& in_place);

}  // namespace leeway
