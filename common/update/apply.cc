#include "common/update/apply.h"

#include <algorithm>

#include "common/update/combine.h"
#include "common/update/loop.h"

namespace leeway {
namespace {

// From so many contributions on, and where differences are formed, the sum is taken in short tiles,
// and weights and slots are fetched before it: so short that the processor is at work on the next
// tile's sum while it waits for this one's, and the memory is never idle.
constexpr size_t kMany = 3;
constexpr size_t kShortTile = 64;
// The groups of encodings (common/codec/group_codec.h), which are decoded whole.
constexpr size_t kDecodedTile = 256;

size_t TileOf(const BlockUpdate& update, bool many) {
  if (!many) return Combiner::kMaxTile;
  const bool decodes = std::any_of(update.contributions.begin(), update.contributions.end(),
                                   [](const FloatPayload* payload) { return payload->decodes(); });
  return decodes ? kDecodedTile : kShortTile;
}

// Applies `rule` to elements [begin, end) of the block. False: not all that it wrote is finite.
bool ApplyRange(const BlockUpdate& update, const UpdateRule& rule, Combiner& combiner, size_t begin,
                size_t end) {
  const size_t slots = update.slots_in.size();
  const float* slots_in[BlockUpdate::kMaxSlots];
  float* slots_out[BlockUpdate::kMaxSlots];
  UpdateStep step = update.step;
  rule.Prepare(step);
  const bool many = update.elastic || update.contributions.size() >= kMany;
  const size_t tile = TileOf(update, many);
  bool finite = true;
  for (size_t offset = begin, count, run = begin; offset < end; offset += count) {
    if (offset == run) run += combiner.Run(offset, end - offset);
    count = std::min(tile - (offset - begin) % tile, run - offset);
    const float* weights_in = update.weights_in + offset;
    for (size_t slot = 0; slot < slots; ++slot) {
      slots_in[slot] = update.slots_in[slot] + offset;
      slots_out[slot] = update.slots_out[slot] + offset;
    }
    if (many) {
      Prefetch(weights_in, count);
      PrefetchToWrite(update.weights_out + offset, count);
      for (size_t slot = 0; slot < slots; ++slot) {
        Prefetch(slots_in[slot], count);
        PrefetchToWrite(slots_out[slot], count);
      }
    }
    finite &= rule.Apply(step, {.count = count,
                                .weights_in = weights_in,
                                .weights_out = update.weights_out + offset,
                                .gradient = combiner.Tile(offset, count),
                                .slots_in = slots_in,
                                .slots_out = slots_out});
  }
  return finite;
}

const UpdateRule& AverageRule() {
  static const UpdateRule& rule = *MakeAverageRule().release();
  return rule;
}

}  // namespace

bool ApplyUpdate(const BlockUpdate& update) {
  if (update.elastic) {
    Combiner combiner = Combiner::Differences(update.contributions, update.weights_in);
    return ApplyRange(update, *update.rule, combiner, 0, update.count);
  }
  Combiner combiner(update.contributions, update.coefficients);
  const bool trained = ApplyRange(update, *update.rule, combiner, 0, update.trained);
  const bool averaged = ApplyRange(update, AverageRule(), combiner, update.trained, update.count);
  for (size_t slot = 0; slot < update.slots_in.size(); ++slot) {
    const float* in = update.slots_in[slot];
    float* out = update.slots_out[slot];
    if (in != out) std::copy(in + update.trained, in + update.count, out + update.trained);
  }
  return trained && averaged;
}

}  // namespace leeway
