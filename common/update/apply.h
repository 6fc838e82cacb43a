// One update of one block, in one pass over memory.
#pragma once

#include <cstddef>
#include <span>

#include "common/update/rule.h"
#include "common/update/tile_writer.h"
#include "common/wire/payload.h"

namespace leeway {

// A run of a block's averaged elements, from the end of the previous run to `end`. Each
// contribution moves an element towards the contribution's value by a share of the distance.
// `shares` has these shares, which add up to at most 1.
struct AveragedMove {
  size_t end = 0;
  // Has one share for each contribution.
  std::span<const float> shares = {};
};

struct BlockUpdate {
  static constexpr size_t kMaxSlots = TileWriter::kMaxSlots;

  const UpdateRule* rule = nullptr;
  UpdateStep step = {};
  // Has at least one contribution. They are in rank order, each of `count` floats.
  std::span<const FloatPayload* const> contributions = {};
  // One coefficient for each contribution (MeanCoefficients). An elastic update ignores them.
  std::span<const float> coefficients = {};
  // The number of elements in the block.
  size_t count = 0;
  // The number of elements, from the first on, that the rule trains. The other elements are running
  // statistics and are averaged: `averaged` covers all of them, in order.
  size_t trained = 0;
  std::span<const AveragedMove> averaged = {};
  // The parts cover all trained elements, in order. If there are no parts, all trained elements are
  // one part with the step unchanged. The update does not read contributions to a part that is
  // skipped.
  std::span<const UpdatePart> parts = {};
  // If true, the contributions are workers' weights, the rule is MakeElasticRule's, and the update
  // treats all elements alike.
  bool elastic = false;
  // Each output may be the same memory as its input; otherwise the two do not overlap. Slots are in
  // the order of rule->slots().
  const float* weights_in = nullptr;
  float* weights_out = nullptr;
  // There are at most kMaxSlots slots.
  std::span<const float* const> slots_in = {};
  std::span<float* const> slots_out = {};
  FarFromReaders far = {};
};

// Combines the contributions (common/update/combine.h) and applies the rule tile by tile, so
// weights and slots are the only block-sized results that it writes. Slots of averaged elements are
// copied unchanged. The caller has checked the sizes.
//
// If a written value is not finite, returns false, and the result must not be used. The check is
// made while values are in registers, so it costs no pass over memory. One check covers everything:
// a NaN or infinity in any contribution, whatever the coefficient, reaches the weights, as does an
// overflow during the update. To find the contribution at fault, the caller searches with
// FloatPayload::FirstNonFinite.
bool ApplyUpdate(const BlockUpdate& update);

}  // namespace leeway
