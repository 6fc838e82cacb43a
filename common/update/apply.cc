#include "common/update/apply.h"

#include <algorithm>
#include <bit>

#include "common/update/combine.h"
#include "common/update/loop.h"
#include "common/update/tile_writer.h"

namespace leeway {
namespace {

// For kMany contributions or more, and for differences, sums are formed in short tiles, and weights
// and slots are fetched before the sum. While the processor waits for one tile's data, it already
// works on the next tile's sum, because the tiles are so short. So the memory is never idle.
constexpr size_t kMany = 3;
constexpr size_t kShortTile = 64;
// If a result bypasses the caches, the tiles of all contributions together have this number of
// floats.
constexpr size_t kFarSum = 512;
// The group size of encodings (common/codec/group_codec.h), which are decoded in whole groups.
constexpr size_t kDecodedTile = 256;

bool HasMany(const BlockUpdate& update) {
  return update.elastic || update.contributions.size() >= kMany;
}

size_t TileOf(const BlockUpdate& update, bool far) {
  if (!far && !HasMany(update)) return Combiner::kMaxTile;
  const bool decodes = std::any_of(update.contributions.begin(), update.contributions.end(),
                                   [](const FloatPayload* payload) { return payload->decodes(); });
  if (decodes) return kDecodedTile;
  if (!far) return kShortTile;
  return std::clamp(std::bit_floor(kFarSum / update.contributions.size()), kShortTile,
                    TileWriter::kFarTile);
}

// Prefetches a tile's weights and slots before its sum is formed.
void Fetch(const UpdateTile& tile, size_t slots) {
  Prefetch(tile.weights_in, tile.count);
  PrefetchToWrite(tile.weights_out, tile.count);
  for (size_t slot = 0; slot < slots; ++slot) {
    Prefetch(tile.slots_in[slot], tile.count);
    PrefetchToWrite(tile.slots_out[slot], tile.count);
  }
}

// Some of a block's elements, and the step that `rule` makes for them. The rule uses the first
// `slots` of the block's slots.
struct Stretch {
  const UpdateRule& rule;
  const UpdateStep& step;
  size_t slots = 0;
  size_t begin = 0;
  size_t end = 0;
};

// Returns false if a written value is not finite.
bool ApplyRange(const BlockUpdate& update, const Stretch& stretch, Combiner& combiner) {
  const auto& [rule, step, slots, begin, end] = stretch;
  TileWriter writer(update.weights_out, update.slots_out.first(slots), update.far);
  const size_t most = TileOf(update, writer.far());
  const float* slots_in[BlockUpdate::kMaxSlots];
  bool finite = true;
  for (size_t offset = begin, count, run = begin; offset < end; offset += count) {
    if (offset == run) run += combiner.Run(offset, end - offset);
    count = std::min(most - (offset - begin) % most, run - offset);
    for (size_t slot = 0; slot < slots; ++slot) slots_in[slot] = update.slots_in[slot] + offset;
    UpdateTile tile{.count = count, .weights_in = update.weights_in + offset, .slots_in = slots_in};
    writer.Begin(offset, tile);
    if (HasMany(update)) Fetch(tile, slots);
    tile.gradient = combiner.Tile(offset, count);
    finite &= rule.Apply(step, tile);
    writer.End(offset, count);
  }
  return finite;
}

const UpdateRule& SharedAverageRule() {
  static const UpdateRule& rule = *MakeAverageRule().release();
  return rule;
}

const UpdateRule& SharedReplaceRule() {
  static const UpdateRule& rule = *MakeReplaceRule().release();
  return rule;
}

void CarryOver(const float* in, float* out, size_t begin, size_t end) {
  if (in != out) std::copy(in + begin, in + end, out + begin);
}

// Copies elements [begin, end) unchanged.
void Skip(const BlockUpdate& update, size_t begin, size_t end) {
  CarryOver(update.weights_in, update.weights_out, begin, end);
  for (size_t slot = 0; slot < update.slots_in.size(); ++slot) {
    CarryOver(update.slots_in[slot], update.slots_out[slot], begin, end);
  }
}

// Returns the update's step. If the rule counts steps by element, the step has the number of
// element `begin`, which most of the following elements share.
UpdateStep StepAt(const BlockUpdate& update, size_t begin) {
  UpdateStep step = update.step;
  if (const std::optional<size_t> steps = update.rule->steps_slot()) {
    step.number = static_cast<uint64_t>(update.slots_in[*steps][begin]) + 1;
  }
  update.rule->Prepare(step);
  return step;
}

// Applies the rule part by part. Returns false if a written value is not finite.
bool Train(const BlockUpdate& update, Combiner& combiner) {
  if (update.trained == 0) return true;
  UpdateStep step = StepAt(update, 0);
  const UpdatePart whole = {.end = update.trained};
  const auto parts = update.parts.empty() ? std::span(&whole, 1) : update.parts;
  bool finite = true;
  size_t begin = 0;
  for (const UpdatePart& part : parts) {
    if (part.skip) {
      Skip(update, begin, part.end);
    } else {
      if (update.rule->steps_slot()) step = StepAt(update, begin);
      finite &= ApplyRange(
          update, {*update.rule, step.In(part), update.slots_in.size(), begin, part.end}, combiner);
    }
    begin = part.end;
  }
  return finite;
}

// Copies the slots of elements that are not trained.
void CarrySlotsOver(const BlockUpdate& update) {
  const std::optional<size_t> average = update.rule->average_slot();
  for (size_t slot = 0; slot < update.slots_in.size(); ++slot) {
    const float* in = slot == average ? update.weights_out : update.slots_in[slot];
    CarryOver(in, update.slots_out[slot], update.trained, update.count);
  }
}

// Returns false if a written value is not finite.
bool Average(const BlockUpdate& update) {
  bool finite = true;
  size_t begin = update.trained;
  for (const AveragedMove& move : update.averaged) {
    const bool replaces = move.shares.size() == 1 && move.shares[0] == 1.0f;
    Combiner combiner =
        replaces ? Combiner(update.contributions, move.shares)
                 : Combiner::Differences(update.contributions, move.shares, update.weights_in);
    finite &= ApplyRange(
        update,
        {replaces ? SharedReplaceRule() : SharedAverageRule(), update.step, 0, begin, move.end},
        combiner);
    begin = move.end;
  }
  return finite;
}

}  // namespace

bool ApplyUpdate(const BlockUpdate& update) {
  if (update.elastic) {
    Combiner combiner = Combiner::Differences(update.contributions, update.weights_in);
    return ApplyRange(update, {*update.rule, update.step, 0, 0, update.count}, combiner);
  }
  Combiner combiner(update.contributions, update.coefficients);
  const bool trained = Train(update, combiner);
  const bool averaged = Average(update);
  CarrySlotsOver(update);
  return trained && averaged;
}

}  // namespace leeway
