// The state that another program's worker keeps between clocks, in the form of a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

struct KeptState {
  // An elastic worker's own weights. Empty for other exchanges.
  std::vector<float> weights = {};
  // The residual: what the encoding of contributions has lost so far. Empty if the worker keeps
  // none.
  std::vector<float> residual = {};
  // The program's own bytes.
  std::string bytes;
};

// The bytes are little-endian: "LWKS", uint32 version (1), the uint64 numbers of weights and of
// residual values, both vectors as float32, and the program's bytes.
std::string SerializeKept(const KeptState& state);
// Returns INVALID_ARGUMENT if the bytes are not such a state, have another version, or belong to a
// model of another size.
absl::StatusOr<KeptState> ReadKept(const std::string& bytes, uint64_t elements);

}  // namespace leeway
