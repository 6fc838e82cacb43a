// How averaged values (running statistics) follow the batches' own values. A step contributes the
// batch's own value b. One batch moves the running value r by a share of the way there: r +=
// momentum (b - r). For several batches the contribution is their mean, weighted as those moves
// would weigh them, and it moves r by the share of all of them, 1 - (1 - momentum)^batches.
//
// So no contribution depends on the r that its worker had read. Applying it makes a convex
// combination of the current r and of batches' values. This can neither oscillate nor leave the
// range of the values seen, however late a contribution comes and however many come at once.
#pragma once

#include <cstdint>
#include <vector>

#include "common/blocks.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Neighbouring averaged elements that move alike.
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

// Returns 1 - (1 - momentum)^batches: the share of the way by which `batches` batches move a
// running value.
double MovedShare(double momentum, double batches);
// Returns the share of the way by which one more batch moves the weighted mean of that batch and
// the `before` batches before it. The share is 1 for the first batch. If `before` is infinite, as
// for a running value, the share is the momentum.
double JoiningShare(double momentum, double before);

}  // namespace leeway
