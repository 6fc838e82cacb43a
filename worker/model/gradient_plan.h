// Where the gradients of values lie during the backward pass: a few buffers that take turns.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "worker/model/graph.h"

namespace leeway {

// A buffer's number.
using GradientBuffer = size_t;

// How the gradient of one input comes about.
struct InputGradient {
  // Where it is written; the same as the output's where the layer works in place, or where it is
  // that very gradient. None: nobody needs it.
  std::optional<GradientBuffer> to = std::nullopt;
  // Before: `to` becomes a copy of this, the output's gradient, which others still read.
  std::optional<GradientBuffer> copy_of = std::nullopt;
  // After: what the input's other readers have found, added to `to`.
  std::optional<GradientBuffer> add = std::nullopt;
};

// One step of the backward pass.
struct GradientStep {
  size_t node = 0;
  // Of its output, complete.
  GradientBuffer output = 0;
  // By input.
  std::vector<InputGradient> inputs;
};

struct GradientPlan {
  // In the order of the backward pass; nodes without trained weights before or in them are left
  // out.
  std::vector<GradientStep> steps;
  // Floats that each buffer holds of one example.
  std::vector<size_t> buffers;
  // Of the scores; the loss writes it.
  GradientBuffer scores = 0;
};

// `in_place` says for each node whether its output lies in its input's place.
GradientPlan PlanGradients(const Graph& graph, const std::vector<bool>& in_place);

}  // namespace leeway
