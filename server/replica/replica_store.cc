#include "server/replica/replica_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {

ReplicaStore::ReplicaStore(const Options& options)
    : options_(options), pools_(options.layout, options.memory, nullptr) {
  const uint32_t blocks = options.layout.BlocksOn(options.shard);
  for (uint32_t i = 0; i < blocks; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    MutexLock lock(slots_.back()->mutex);
    slots_.back()->block.block = options.shard + i * options.layout.shards();
  }
}

ReplicaStore::State ReplicaStore::StateOf(uint32_t block, bool has_previous,
                                          const FloatPayload& payload) {
  const size_t count = options_.layout.Range(block).count;
  size_t offset = 0;
  const auto next = [&](bool weights) {
    SharedFloats values = weights ? pools_.Weights(block) : pools_.Slot(block);
    const float* from = payload.Tile(offset, count, values.mutable_data());
    if (from != values.mutable_data()) std::copy_n(from, count, values.mutable_data());
    offset += count;
    return values;
  };
  State state;
  state.values.weights = next(true);
  for (size_t slot = 0; slot < options_.slots; ++slot) state.values.slots.push_back(next(false));
  const size_t left = (payload.size() - offset) / count;
  if (left > (has_previous ? 1 : 0)) state.values.shadow = next(false);
  if (has_previous) state.previous = next(true);
  return state;
}

absl::Status ReplicaStore::Check(const std::string& what, uint32_t block,
                                 const v1::ReplicatedBlock& replicated,
                                 const FloatPayload& payload) const {
  const bool mine = block < options_.layout.blocks() &&
                    options_.layout.ShardOf(block) == options_.shard &&
                    replicated.since_epoch() == options_.since_epoch;
  if (!mine) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": this server holds the replica of shard ", options_.shard, " that began in epoch ",
        options_.since_epoch, ", but the sender means the replica of epoch ",
        replicated.since_epoch(), ": the sender no longer owns the shard"));
  }
  // The payload may have one more vector, the shadow (server/store/reply_encoder.h).
  const size_t count = options_.layout.Range(block).count;
  const size_t parts = 1 + options_.slots + (replicated.has_previous() ? 1 : 0);
  const size_t bytes = count * sizeof(float);
  if (payload.bytes() == parts * bytes || payload.bytes() == (parts + 1) * bytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(what, ": payload: has ", payload.size(),
                                                 " values, must have ", parts, " or ", parts + 1,
                                                 " times ", count));
}

absl::Status ReplicaStore::Take(const v1::ExchangeHeader& header,
                                const v1::ReplicatedBlock& replicated, const FloatPayload& payload,
                                const std::function<bool()>& stands) {
  const uint32_t block = header.block();
  const std::string what =
      absl::StrCat("replica of block ", block, ", version ", replicated.version());
  RETURN_IF_ERROR(Check(what, block, replicated, payload));
  State state = StateOf(block, replicated.has_previous(), payload);
  if (stands && !stands()) {
    return absl::UnavailableError(
        absl::StrCat(what, ": the owner took its memory back while this server was reading it"));
  }
  Slot& slot = SlotOf(block);
  MutexLock lock(slot.mutex);
  if (slot.closed || (slot.here && replicated.version() < slot.block.progress.version)) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": ",
        slot.closed ? "this server owns the block now" : "this server has a newer state"));
  }
  Block& held = slot.block;
  if (options_.keep_previous && replicated.version() != held.progress.version) {
    const bool next = slot.here && replicated.version() == held.progress.version + 1;
    held.previous =
        next ? (held.values.shadow ? held.values.shadow : held.values.weights) : SharedFloats();
  }
  if (state.previous) held.previous = std::move(state.previous);
  slot.here = true;
  held.values = std::move(state.values);
  held.progress.version = replicated.version();
  held.progress.updates = replicated.updates();
  held.progress.clocks.assign(replicated.clocks().begin(), replicated.clocks().end());
  held.progress.counted.assign(replicated.counted().begin(), replicated.counted().end());
  return absl::OkStatus();
}

absl::Status ReplicaStore::CheckWhole() const {
  for (const auto& slot : slots_) {
    MutexLock lock(slot->mutex);
    if (slot->here) continue;
    return absl::FailedPreconditionError(absl::StrCat("the replica of shard ", options_.shard,
                                                      " never got block ", slot->block.block));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ReplicaStore::Block>> ReplicaStore::TakeOver() {
  std::vector<Block> blocks;
  absl::Status whole;
  // Closes all blocks, even if one is missing, because the owner sends no more states.
  for (const auto& slot : slots_) {
    MutexLock lock(slot->mutex);
    slot->closed = true;
    if (slot->here) {
      blocks.push_back(std::move(slot->block));
    } else if (whole.ok()) {
      whole = absl::FailedPreconditionError(absl::StrCat("the replica of shard ", options_.shard,
                                                         " never got block ", slot->block.block));
    }
  }
  if (!whole.ok()) return whole;
  return blocks;
}

}  // namespace leeway
