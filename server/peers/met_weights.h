// The weights of one registration, block by block, which other workers meet
// (server/peers/meeting_store.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/blocks.h"
#include "common/mutex.h"
#include "common/shm/shared_memory.h"
#include "common/wire/payload.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/core/meeting_core.h"
#include "server/peers/turns.h"
#include "server/shard/shard.h"
#include "server/store/block_pools.h"

namespace leeway {

// Thread-safe.
class MetWeights : public std::enable_shared_from_this<MetWeights> {
 public:
  // `rank` is the worker whose weights these are. `weights` is the whole vector.
  MetWeights(uint32_t rank, const BlockLayout& layout, std::span<const float> weights,
             const std::shared_ptr<SharedArena>& memory);

  // Returns true if there is such a block, and both spans have its size.
  bool Has(uint32_t block, size_t change, size_t weights) const {
    return block < blocks_.size() && change == layout_.Range(block).count && weights == change;
  }
  // Methods of MeetingStore, whose checks of the registration are done. The object must be owned by
  // a shared_ptr.
  void Meet(const v1::ExchangeHeader& header, FloatPayload payload, Shard::Done done);
  void Subtract(uint32_t block, std::span<const float> change, std::span<float> weights);
  void End();

 private:
  struct Block {
    explicit Block(uint32_t number) : core(number) {}
    // The thread that has the turn may make the next version.
    Turns turns;
    Mutex mutex;
    MeetingCore core GUARDED_BY(mutex);
    SharedFloats current GUARDED_BY(mutex);
    // True if no meeting may change the block any more.
    bool ended GUARDED_BY(mutex) = false;
    // The number of changes so far.
    uint64_t version GUARDED_BY(mutex) = 0;
    // The kept answers, by rank.
    absl::flat_hash_map<uint32_t, BlockReading> answers GUARDED_BY(mutex);
  };

  absl::Status Check(const v1::ExchangeHeader& header, const FloatPayload& payload) const;
  // Make a meeting, and drop a kept answer, when it is their turn.
  absl::StatusOr<BlockReading> MeetNow(const v1::ExchangeHeader& header,
                                       const FloatPayload& payload);
  absl::StatusOr<BlockReading> DropAnswer(const v1::ExchangeHeader& header);
  void SubtractNow(uint32_t block, std::span<const float> change, std::span<float> weights);
  // Returns the block as the answer to a meeting.
  static BlockReading ReadingOf(uint32_t number, const Block& block) REQUIRES(block.mutex);
  absl::Status Ended() const;
  // Returns the error for a meeting whose result is not finite.
  absl::Status NotFinite(const v1::ExchangeHeader& header, const FloatPayload& payload,
                         std::span<const float> result) const;

  const uint32_t rank_;
  const BlockLayout layout_;
  const BlockPools pools_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace leeway
