// One update of one block, in one pass over memory.
#pragma once

#include <cstddef>
#include <span>

#include "common/update/rule.h"
#include "common/update/tile_writer.h"
#include "common/wire/payload.h"

namespace leeway {

// Some of a block's averaged elements: from where the ones before them end up to `end`, and by
// which share of the way each contribution moves them to its own values; all together by 1 at most.
struct AveragedMove {
  size_t end = 0;
  // One a contribution.
  std::span<const float> shares = {};
};

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
  // The first of them are trained by the rule; the others, running statistics, are averaged, which
  // means that `averaged` has them all, in order.
  size_t trained = 0;
  std::span<const AveragedMove> averaged = {};
  // Of the trained elements all, in order; none: one part, with the step as it is. Contributions to
  // a part that is skipped are not read.
  std::span<const UpdatePart> parts = {};
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

// Combines the contributions (common/update/combine.h) and applies the rule tile by tile. So
// weights and slots are the only block-sized results that it writes. Slots of averaged elements are
// carried over. The caller has checked the sizes.
//
// False if not everything that it wrote is finite; then the result must not be used. The check is
// made while values are in registers, so it costs no pass over memory. One check covers everything:
// a NaN or infinity of any contribution, whatever its coefficient, ends up in the weights, and so
// does an overflow on the way. To find the contribution to blame, the caller searches with
// FloatPayload::FirstNonFinite.
bool ApplyUpdate(const BlockUpdate& update);

}  // namespace leeway
