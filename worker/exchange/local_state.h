// What a worker keeps between clocks, and its bytes in a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/buffer.h"

namespace leeway {

struct LocalState {
  // Updates made by the local optimizer: Adam's t - 1.
  uint64_t updates = 0;
  // Local weights, then the optimizer's slots, then the residual: each of the model's whole size.
  std::vector<FloatBuffer> vectors;
  // The last of them is the residual of compressed contributions.
  bool residual = false;
  // Where an exchange is spread: by group of blocks, the examples since it was last sent.
  std::vector<uint64_t> counts;

  // `count` zeroed vectors of `size` elements, and behind them, if asked for, a residual.
  static LocalState Zeros(size_t count, size_t size, bool residual = false);
  // Of a state whose vectors have the same size, as many of them as both have, and with as many
  // counts.
  void CopyFrom(const LocalState& other);
};

// Bytes, all little-endian: "LWST", uint32 version (2), uint64 updates, uint64 number of vectors,
// uint64 elements of each, uint64 1 if the last is a residual, else 0; then the vectors' float32
// values, then the counts as uint64.
std::string SerializeState(const LocalState& state);
// Into a state of the same shape, of a model of `elements`. What a changed job may have otherwise
// is made to fit, with a warning where something is lost:
//   - a residual that is not in the bytes is zeros, one that the state has no place for is dropped;
//   - of another number of counts, neither being 0, each is the largest: the groups were others.
// INVALID_ARGUMENT, and nothing changed, for bytes of another shape, version or length, or values
// that are not finite.
absl::Status ParseState(const std::string& bytes, uint64_t elements, LocalState& state);

}  // namespace leeway
