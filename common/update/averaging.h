// How averaged values (running statistics) follow the batches' own values. A step contributes the
// batch's own value b. One batch moves the running value r towards b by a share of the distance,
// the momentum. For several batches the contribution is the weighted mean of their values, with the
// weights that they would get by moving r one after the other. The mean moves r by the share
// 1 - (1 - momentum)^batches.
//
// So no contribution depends on the r that its worker had read. The new r is a convex combination
// of the current r and the batches' values. It neither oscillates nor leaves the range of these
// values, even if contributions come late or many come at once.
#pragma once

#include <cstdint>
#include <vector>

#include "common/blocks.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Neighbouring averaged elements with the same momentum.
struct AveragedElements {
  ElementRange range;
  double momentum = 0;
};

// Returns the averaged elements of a model, in order and without gaps from the last trained element
// to the end.
std::vector<AveragedElements> AveragedElementsOf(const v1::ModelSchema& schema);
// Returns the part of `all` that lies in `range`.
std::vector<AveragedElements> Within(const std::vector<AveragedElements>& all,
                                     const ElementRange& range);

// Returns 1 - (1 - momentum)^batches. By this share of the distance, `batches` batches move a
// running value.
double MovedShare(double momentum, double batches);
// Returns the share of the distance by which one more batch moves the weighted mean of the `before`
// earlier batches. The share is 1 for the first batch. If `before` is infinite, as for a running
// value, the share is the momentum.
double JoiningShare(double momentum, double before);

}  // namespace leeway
