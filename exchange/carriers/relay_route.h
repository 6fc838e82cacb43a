// The way of a block through the workers, in a ring or a tree (topology.algorithm). The sum of all
// contributions travels to the worker that holds the block, the root. The new weights travel from
// the root to all others.
//
// ring: with n workers and root k the sum goes k + 1, k + 2, ..., k, and the weights go k, k + 1,
// ..., k - 1 (Patarasu and Yuan 2009). Each worker receives from the worker before it only.
//
// tree: both go along a binomial tree. As each block has its own root, all workers send the same
// number of bytes, as in a ring, in 2 ceil(log2 n) steps instead of 2 (n - 1).
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/v1/job.pb.h"

namespace leeway {

// What one worker does with a block.
struct RelayRoute {
  // The workers whose sums it fetches and adds to its own contribution, in this order. So the bits
  // of the sum do not depend on when the sums arrive.
  std::vector<uint32_t> sums_from;
  // The worker from which it fetches the new weights. Absent at the root.
  std::optional<uint32_t> weights_from;
  // True if other workers fetch the new weights from it.
  bool passes_weights_on = false;
};

// Returns the route of a block with this root at worker `rank`. The algorithm is ring or tree.
RelayRoute RouteOf(v1::AllReduceAlgorithm algorithm, uint32_t workers, uint32_t root,
                   uint32_t rank);

}  // namespace leeway
