// Decides what a job takes over from a saved state. Another job may have written the state, with
// another exchange, local optimizer, compression or block size.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "exchange/kept_state.h"

namespace leeway {

// Reads a saved state into `state`. The names, vectors and counts in `state` say what this job
// keeps for a model of `elements`. Parts with the same names are read from the bytes:
// - The exchange's own vectors and the residual, but only if the same exchange saved them. The
//   change of a delta exchange is not a gradient, and the weights of two exchanges differ, too.
// - The optimizer's slots, from any exchange, together with the optimizer's number of updates,
//   because Adam's moments and their bias correction must begin together.
// - The counts, together with the exchange's own vectors. If the groups of blocks differ, every
//   count becomes the largest saved one.
// - The loss scale, from any exchange.
//
// Everything else becomes zero. One warning in the log says what is lost and what therefore starts
// again. Returns true if the exchange's own vectors come from the bytes. Returns false if they are
// zeros; the exchange must then begin at the servers' weights, as it does without a state. If
// ReadState fails, returns its error and changes nothing.
absl::StatusOr<bool> TakeUpState(const std::string& bytes, uint64_t elements, KeptState& state);

}  // namespace leeway
