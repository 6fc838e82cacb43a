// What a worker of another program keeps between clocks, as a checkpoint holds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

struct KeptState {
  // An elastic worker's own weights. Empty for other exchanges.
  std::vector<float> weights = {};
  // What the encodings of contributions have lost so far. Empty if it is not kept.
  std::vector<float> residual = {};
  // The program's own bytes.
  std::string bytes;
};

// The bytes are little-endian: "LWKS", uint32 version (1), the uint64 numbers of weights and of
// residual values, both vectors as float32, and the program's bytes.
std::string SerializeKept(const KeptState& state);
// INVALID_ARGUMENT if the bytes are not such a state, are of another version, or are of a model of
// another size.
absl::StatusOr<KeptState> ReadKept(const std::string& bytes, uint64_t elements);

}  // namespace leeway
