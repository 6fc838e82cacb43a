// Which outputs of a model's nodes share memory.
#pragma once

#include <cstddef>
#include <vector>

#include "worker/model/graph.h"

namespace leeway {

struct OutputPlaces {
  // By node: whether its output overwrites its first input.
  std::vector<bool> in_place;
  // By value: the value whose memory it uses, its own or that of an earlier value. 0: the batch's
  // features.
  std::vector<size_t> home;
};

// No value is overwritten that is read again, whether by other nodes, in the backward pass, or
// because a segment is computed again from it.
OutputPlaces PlanPlaces(const Graph& graph);

}  // namespace leeway
