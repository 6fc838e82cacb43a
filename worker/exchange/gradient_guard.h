// What becomes of a gradient that is not finite, or too long (exchange.on_bad_gradient and
// exchange.max_norm). One whose loss is not finite is no better, whatever it looks like: where bad
// ones are left out or clipped it is left out.
//
// The norm is the Euclidean one of the worker's whole contribution, over all trained elements, as
// most frameworks clip it; and what is left out is left out whole. Neither hangs on how the vector
// is cut into blocks, nor on how many servers there are, so that sync mode stays deterministic. The
// price: no block leaves before the backward pass is over.
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
  // Unless it is as it was: why, naming the tensor.
  std::string why;
};

// The job has something to be guarded against beyond what every block is searched for anyway.
bool GuardsGradients(const v1::Exchange& exchange);

// Looks at `contribution`, the whole vector, and scales it to max_norm, or zeroes it, to be handed
// in with a weight of 0: kLeftOut. OUT_OF_RANGE, naming the tensor, if the job refuses it. The norm
// is summed in double precision, in one order.
absl::StatusOr<GuardedGradient> GuardGradient(const v1::Exchange& exchange,
                                              const v1::ModelSchema& schema,
                                              std::span<float> contribution);

// Zeroes it, to be handed in with a weight of 0.
GuardedGradient LeaveOut(std::span<float> contribution, std::string why);

}  // namespace leeway
