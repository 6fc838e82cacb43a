// Decides which outputs of a model's nodes share memory.
#pragma once

#include <cstddef>
#include <vector>

#include "worker/model/graph.h"

namespace leeway {

struct OutputPlaces {
  // Whether each node's output overwrites the node's first input.
  std::vector<bool> in_place;
  // For each value, the value whose memory it uses: its own, or that of an earlier value. 0 is the
  // memory of the batch's features.
  std::vector<size_t> home;
};

// Plans the outputs of the graph. A value is not overwritten if it is read again by other nodes, in
// the backward pass, or when a segment is computed again.
OutputPlaces PlanPlaces(const Graph& graph);

}  // namespace leeway
