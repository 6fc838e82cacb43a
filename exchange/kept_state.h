// The state that a worker keeps between clocks, and its form in a checkpoint.
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

// Names the vectors of a state. A name has at most 32 characters from a-z, 0-9 and _.
struct StateNames {
  // "gradient", "delta", "elastic".
  std::string exchange;
  // The names of the exchange's own vectors, then those of the local optimizer's slots.
  std::vector<std::string> own{};
  std::vector<std::string> slots{};
  // True if the residual of compressed contributions follows the vectors in `own`.
  bool residual = false;

  size_t vectors() const { return own.size() + slots.size() + (residual ? 1 : 0); }
};

struct KeptState {
  StateNames names;
  // The number of updates that the local optimizer has made, which is t - 1 in Adam.
  uint64_t updates = 0;
  // The vectors in the order of `names`, each as long as the model.
  std::vector<FloatBuffer> vectors;
  // For a spread exchange: for each group of blocks, the number of examples since the group was
  // last sent.
  std::vector<uint64_t> counts;
  // Set in fp16 only.
  std::optional<StepLossScale> loss_scale = std::nullopt;
  // The bytes of another program's worker. Absent in the state of Leeway's own workers.
  std::optional<std::string> program = std::nullopt;

  // Returns a state whose vectors have `size` zeros each.
  static KeptState Zeros(StateNames names, size_t size, size_t counts = 0);
};

// Returns the bytes of a state, all little-endian: "LWST"; uint32 version (3); uint32 length of the
// header; the header, a v1::WorkerStateHeader; the float32 values of the vectors; the counts as
// uint64; the program's bytes.
std::string SerializeState(const KeptState& state);
// Reads the state of a worker whose model has `elements`. If an older build saved the state for
// another program, the name of the exchange is empty. If an older build saved the state of Leeway's
// own worker, the state has no names, and the function returns nothing. Returns INVALID_ARGUMENT
// for the state of another model, a newer version, a wrong length, invalid names, an impossible
// loss scale, or values that are not finite.
absl::StatusOr<std::optional<KeptState>> ReadState(const std::string& bytes, uint64_t elements);

}  // namespace leeway
