// What a worker keeps between clocks, and its bytes in a checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "common/loss_scale.h"

namespace leeway {

// What the vectors of a state are. Names have up to 32 of a-z, 0-9 and _.
struct StateNames {
  // "gradient", "delta", "elastic".
  std::string exchange;
  // The exchange's own vectors, then the local optimizer's slots.
  std::vector<std::string> own{};
  std::vector<std::string> slots{};
  // Behind them, that of compressed contributions.
  bool residual = false;

  size_t vectors() const { return own.size() + slots.size() + (residual ? 1 : 0); }
};

struct LocalState {
  StateNames names;
  // Updates made by the local optimizer: Adam's t - 1.
  uint64_t updates = 0;
  // As `names` has them: each of the model's whole size.
  std::vector<FloatBuffer> vectors;
  // Where an exchange is spread: by group of blocks, the examples since it was last sent.
  std::vector<uint64_t> counts;
  // In fp16.
  std::optional<StepLossScale> loss_scale = std::nullopt;

  // With vectors of `size` zeros.
  static LocalState Zeros(StateNames names, size_t size, size_t counts = 0);
  // Of a state whose vectors have the same size, as many of them as both have, and with as many
  // counts.
  void CopyFrom(const LocalState& other);
};

// Bytes, all little-endian: "LWST", uint32 version (3), uint32 length of the header; the header, a
// v1::WorkerStateHeader; then the vectors' float32 values, then the counts as uint64.
std::string SerializeState(const LocalState& state);
// The state of a worker whose model has `elements`. Nothing: it was saved by an older build, whose
// states have no names. INVALID_ARGUMENT for another model's, a newer version, another length,
// names that are none, a loss scale that no worker has, or values that are not finite.
absl::StatusOr<std::optional<LocalState>> ReadState(const std::string& bytes, uint64_t elements);

}  // namespace leeway
