// Which outputs of a model's nodes share memory.
#pragma once

#include <cstddef>
#include <vector>

#include "worker/model/graph.h"

namespace leeway {

struct OutputPlaces {
  // By node: its output lies in its first input's place.
  std::vector<bool> in_place;
  // By value: the value in whose memory it lies, its own or that of one before. 0: the batch's
  // features.
  std::vector<size_t> home;
};

// Nothing is written over that is read again: by other nodes, in the backward pass, or because a
// segment is computed again from it.
OutputPlaces PlanPlaces(const Graph& graph);

}  // namespace leeway
