// Clips, leaves out or refuses a gradient that is not finite or too long (exchange.on_bad_gradient
// and exchange.max_norm). If bad gradients are left out or clipped, a gradient whose loss is not
// finite is left out even if its own values are good.
//
// The norm is the Euclidean norm of the trained elements of the worker's whole contribution, as in
// most frameworks. A contribution is left out or clipped as a whole. So the result depends neither
// on the blocks nor on the number of servers, and sync mode stays deterministic. The price is that
// no block can be sent before the backward pass is over.
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
  // The reason why the contribution was changed, naming the tensor. Empty if it was not changed.
  std::string why;
};

// Returns true if the job asks for a check of the whole gradient. It does not if it only refuses
// values that are not finite, because every block is checked for such values anyway.
bool GuardsGradients(const v1::Exchange& exchange);

// Checks `contribution`, the whole vector. Scales it to max_norm (kClipped), or zeroes it so that
// it is sent with a weight of 0 (kLeftOut). Returns OUT_OF_RANGE, naming the tensor, if the job
// refuses it. The norm is summed in double precision, always in the same order.
absl::StatusOr<GuardedGradient> GuardGradient(const v1::Exchange& exchange,
                                              const v1::ModelSchema& schema,
                                              std::span<float> contribution);

// Zeroes the contribution, so that it is sent with a weight of 0.
GuardedGradient LeaveOut(std::span<float> contribution, std::string why);

}  // namespace leeway
