// Says what happens to a gradient that is not finite or too long (exchange.on_bad_gradient and
// exchange.max_norm). If bad gradients are left out or clipped, a gradient whose loss is not finite
// is left out, too, however good it looks.
//
// The norm is the Euclidean norm of the worker's whole contribution, over all trained elements, as
// most frameworks clip it. A contribution is left out as a whole. Neither rule depends on the
// blocks or on the number of servers, so sync mode stays deterministic. The price is that no block
// leaves before the backward pass is over.
#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct GuardedGradient {
  enum Verdict { kAsItIs, kClipped, kLeftOut };
  Verdict verdict = kAsItIs;
  // Why the contribution was changed, naming the tensor; empty if it was not.
  std::string why;
};

// True if the job asks for more than the check for values that are not finite, which every block
// gets anyway.
bool GuardsGradients(const v1::Exchange& exchange);

// Checks `contribution`, the whole vector. Scales it to max_norm, or zeroes it so that it is handed
// in with a weight of 0 (kLeftOut). OUT_OF_RANGE, naming the tensor, if the job refuses it. The
// norm is summed in double precision, always in the same order.
absl::StatusOr<GuardedGradient> GuardGradient(const v1::Exchange& exchange,
                                              const v1::ModelSchema& schema,
                                              std::span<float> contribution);

// Zeroes the contribution, so that it is handed in with a weight of 0.
GuardedGradient LeaveOut(std::span<float> contribution, std::string why);

}  // namespace leeway
