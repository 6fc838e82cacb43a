#include "server/store/block_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/update/apply.h"
#include "common/update/factors.h"

namespace leeway {
namespace {

// If all weights together, or all slots together, have this size or more, a block's values are
// rarely in a cache at its next update (docs/lab/performance.md, Update rules).
constexpr uint64_t kFarBytes = 16 << 20;

FarFromReaders FarOf(uint64_t elements, size_t slots) {
  const uint64_t bytes = elements * sizeof(float);
  return {.weights = bytes >= kFarBytes, .slots = bytes * slots >= kFarBytes};
}

// What an update does to a block's averaged elements.
struct AveragedMoves {
  AveragedMoves(const std::vector<AveragedElements>& all, const ElementRange& block,
                std::span<const ContributionWeight> weights) {
    const std::vector<AveragedElements> here = Within(all, block);
    shares.reserve(here.size() * weights.size());
    for (const AveragedElements& elements : here) {
      for (const ContributionWeight& weight : weights) {
        const double moved = MovedShare(elements.momentum, weight.batches);
        shares.push_back(static_cast<float>(weight.averaged * moved));
      }
      moves.push_back(
          {elements.range.end() - block.offset, std::span(shares).last(weights.size())});
    }
  }
  std::vector<AveragedMove> moves;

 private:
  std::vector<float> shares;
};

}  // namespace

BlockStore::BlockStore(const BlockLayout& layout, uint32_t server, std::unique_ptr<UpdateRule> rule,
                       const Options& options)
    : layout_(layout),
      server_(server),
      rule_(std::move(rule)),
      options_(options),
      far_(FarOf(layout.ElementsOn(server), rule_->slots().size())),
      pools_(layout, options.memory, options.slot_memory),
      blocks_(layout.BlocksOn(server)) {
  for (std::string_view name : rule_->slots()) slot_names_.emplace_back(name);
}

bool BlockStore::Has(uint32_t block) const {
  return block < layout_.blocks() && layout_.ShardOf(block) == server_;
}

SharedFloats BlockStore::Allocate(uint32_t block) const { return pools_.Weights(block); }

SharedFloats BlockStore::AllocateSlot(uint32_t block) const { return pools_.Slot(block); }

void BlockStore::Set(uint32_t block, const FloatPayload& weights) {
  BlockValues values;
  values.weights = Allocate(block);
  weights.CopyTo({values.weights.mutable_data(), Range(block).count});
  for (size_t slot = 0; slot < slot_names_.size(); ++slot) {
    values.slots.push_back(AllocateSlot(block));
    float* const start = values.slots.back().mutable_data();
    if (slot == rule_->average_slot()) {
      weights.CopyTo({start, Range(block).count});
    } else {
      std::fill_n(start, Range(block).count, rule_->slot_start(slot));
    }
  }
  Set(block, std::move(values));
}

void BlockStore::Set(uint32_t block, BlockValues values) {
  Block& state = At(block);
  state.current = std::move(values.weights);
  state.slots.assign(std::make_move_iterator(values.slots.begin()),
                     std::make_move_iterator(values.slots.end()));
  state.previous = SharedFloats();
}

void BlockStore::SetPrevious(uint32_t block, SharedFloats weights) {
  At(block).previous = std::move(weights);
}

BlockValues BlockStore::Current(uint32_t block) const {
  const Block& state = At(block);
  return {state.current, {state.slots.begin(), state.slots.end()}, {}};
}

SharedFloats BlockStore::CurrentWeights(uint32_t block) const { return At(block).current; }

SharedFloats BlockStore::CurrentAverage(uint32_t block) const {
  const Block& state = At(block);
  return state.slots.empty() ? SharedFloats() : state.slots[*rule_->average_slot()];
}

SharedFloats BlockStore::PreviousWeights(uint32_t block) const { return At(block).previous; }

BlockWrite BlockStore::Begin(uint32_t block) const {
  const Block& state = At(block);
  BlockWrite write;
  write.weights_in = state.current;
  write.weights_out = Allocate(block);
  write.slots_in = state.slots;
  for (size_t slot = 0; slot < state.slots.size(); ++slot) {
    write.slots_out.push_back(AllocateSlot(block));
  }
  return write;
}

bool BlockStore::Run(uint32_t block, const BlockWrite& write,
                     std::span<const FloatPayload* const> contributions,
                     std::span<const ContributionWeight> weights, const UpdateStep& step,
                     std::span<const UpdatePart> rates) const {
  const ElementRange range = Range(block);
  absl::InlinedVector<float, 1> coefficients;
  for (const ContributionWeight& weight : weights) coefficients.push_back(weight.trained);
  const AveragedMoves averaged(options_.averaged, range, weights);
  const std::vector<UpdatePart> parts = Multiplied(PartsWithin(options_.parts, range), rates);
  BlockUpdate update;
  update.rule = rule_.get();
  update.step = step;
  update.contributions = contributions;
  update.coefficients = coefficients;
  update.trained = TrainedIn(block);
  update.averaged = averaged.moves;
  update.parts = parts;
  update.elastic = options_.elastic;
  update.count = range.count;
  update.weights_in = write.weights_in.span().data();
  update.weights_out = write.weights_out.mutable_data();
  absl::InlinedVector<const float*, 2> slots_in;
  absl::InlinedVector<float*, 2> slots_out;
  for (size_t s = 0; s < write.slots_out.size(); ++s) {
    slots_in.push_back(write.slots_in[s].span().data());
    slots_out.push_back(write.slots_out[s].mutable_data());
  }
  update.slots_in = slots_in;
  update.slots_out = slots_out;
  update.far = {.weights = far_.weights && !write.awaited, .slots = far_.slots};
  return ApplyUpdate(update);
}

void BlockStore::Commit(uint32_t block, BlockWrite write) {
  Block& state = At(block);
  if (options_.keep_previous) state.previous = state.current;
  state.current = std::move(write.weights_out);
  state.slots = std::move(write.slots_out);
}

void BlockStore::Skip(uint32_t block) {
  if (options_.keep_previous) At(block).previous = At(block).current;
}

size_t BlockStore::TrainedIn(uint32_t block) const {
  const ElementRange range = Range(block);
  if (options_.trained <= range.offset) return 0;
  return std::min(options_.trained - range.offset, range.count);
}

}  // namespace leeway
