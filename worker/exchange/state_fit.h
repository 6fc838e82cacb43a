// What a job takes up of a state that another one may have saved: resumed with another exchange,
// local optimizer, compression or cut into blocks.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/exchange/local_state.h"

namespace leeway {

// Into `state`, which says by its names, its vectors' number and size and its number of counts what
// the job keeps, of a model of `elements`. What has the same names in the bytes is theirs:
//   - the exchange's own vectors and the residual, of the same exchange: a change and a gradient
//   are
//     not the same thing, nor are two exchanges' weights;
//   - the optimizer's slots, of any exchange, and with them its number of updates: Adam's moments
//     and their bias correction begin together;
//   - the counts, with the exchange's own vectors. Those of other groups are each the largest.
//   - the loss scale, of any exchange.
// All else is zeros. One warning says what is lost, and what begins anew because of it.
// True: the own vectors are those of the bytes. False: zeros, and the exchange is to begin as one
// without a state does, at the servers' weights. ReadState's errors, and then nothing is changed.
absl::StatusOr<bool> TakeUpState(const std::string& bytes, uint64_t elements, LocalState& state);

}  // namespace leeway
