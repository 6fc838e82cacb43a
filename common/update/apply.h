// One update of one block, in one pass over memory.
#pragma once

#include <cstddef>
#include <span>

#include "common/payload.h"
#include "common/update/rule.h"
#include "common/update/tile_writer.h"

namespace leeway {

struct BlockUpdate {
  static constexpr size_t kMaxSlots = TileWriter::kMaxSlots;

  const UpdateRule* rule = nullptr;
  UpdateStep step = {};
  // In rank order, each of `count` floats; at least one.
  std::span<const FloatPayload* const> contributions = {};
  // One a contribution (MeanCoefficients). Ignored by an elastic update.
  std::span<const float> coefficients = {};
  // Elements of the block.
  size_t count = 0;
  // The first of them are trained by the rule; the others, running statistics, are averaged.
  size_t trained = 0;
  // The contributions are workers' weights, and the rule is MakeElasticRule's; all elements alike.
  bool elastic = false;
  // Each out may equal its in; otherwise they do not overlap. Slots in the order of rule->slots().
  const float* weights_in = nullptr;
  float* weights_out = nullptr;
  // At most kMaxSlots.
  std::span<const float* const> slots_in = {};
  std::span<float* const> slots_out = {};
  FarFromReaders far = {};
};

// Combines the contributions (common/update/combine.h) and applies the rule tile by tile, so that
// nothing as large as the block is written but weights and slots. Slots of averaged elements are
// carried over. Sizes are the caller's to have checked.
//
// False: what it wrote is not all finite, and must not be used. Looked at while it is in registers,
// it costs no pass over memory, and it tells of everything at once: a NaN or infinity of any
// contribution, whatever its coefficient, ends up in the weights, and so does what overflows on the
// way. Whose it was is for the caller to search for (FloatPayload::FirstNonFinite).
bool ApplyUpdate(const BlockUpdate& update);

}  // namespace leeway
