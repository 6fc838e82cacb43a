// What a worker of somebody else's program keeps between clocks, as a checkpoint holds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

struct KeptState {
  // Of an elastic worker: its own weights; else empty.
  std::vector<float> weights = {};
  // What the encodings of contributions have lost so far; empty if it is not kept.
  std::vector<float> residual = {};
  // The program's own.
  std::string bytes;
};

// Bytes, all little-endian: "LWKS", uint32 version (1), uint64 numbers of weights and of values of
// the residual, both as float32, then the program's bytes.
std::string SerializeKept(const KeptState& state);
// INVALID_ARGUMENT: not such a state, of another version, or of a model of another size.
absl::StatusOr<KeptState> ReadKept(const std::string& bytes, uint64_t elements);

}  // namespace leeway
