// Memory in which a worker leaves its contributions for another worker of its host, which adds them
// up and sends the sum (workers.per_host: combine; client/calls/host_group.h).
//
// It holds a control page and the contribution vector. The control page has the job's generation,
// the number of times that the owner has begun, and for each block a word that says which clock's
// contribution lies there, and its examples:
//
//   owner: Publish   writes the values and the examples, then the word (release)
//   reader: Look     reads the word (acquire), then examples and values
//   owner: Withdraw  words = 0, then a full fence; then writes other values
//   reader: Stands   a full fence, then reads the word again, after it has used the values
//
// This is a sequence lock, as in common/shm/shared_memory.h: what was computed from values that
// changed meanwhile is discarded. The number of beginnings tells a contribution from the same one
// that the owner computes once more after it has registered again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls/block_range.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "common/shm/shared_memory.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// The owner's end. Lives as long as the process. Not thread-safe.
class ContributionMemory {
 public:
  // For a model of `total` elements, however it is cut into blocks. Address space only: memory is
  // taken by Begin. The system's error where there is no shared memory.
  static absl::StatusOr<std::unique_ptr<ContributionMemory>> Make(uint64_t total);

  // What the reader needs (ContributionView::Map).
  v1::MemoryOffer Offer() const { return arena_->Offer(); }

  // The worker has registered: nothing is published, and the vector is zeroed. INVALID_ARGUMENT if
  // the model is not the one that the memory was made for. RESOURCE_EXHAUSTED if the system has no
  // memory for the vector.
  absl::Status Begin(const BlockLayout& layout, uint64_t generation);
  // After Begin: the vector, `total` floats on a page's boundary.
  FloatBuffer Vector() const;

  // The vector's blocks are the contribution of `clock`, and stay so until Withdraw.
  void Publish(uint64_t clock, uint64_t examples, BlockRange blocks);
  // The vector is going to change.
  void Withdraw();

 private:
  ContributionMemory(std::shared_ptr<SharedArena> arena, uint64_t total)
      : arena_(std::move(arena)), total_(total) {}

  const std::shared_ptr<SharedArena> arena_;
  const uint64_t total_;
  // Control page and vector; null before Begin.
  std::shared_ptr<std::byte> memory_;
  std::span<std::atomic<uint64_t>> words_;
  uint64_t values_ = 0;
};

// The reader's end: another worker's memory. Trusts nothing that it finds there. Thread-safe.
class ContributionView {
 public:
  // As SharedMapping::Map. INVALID_ARGUMENT if the memory is too small for a model of this layout.
  static absl::StatusOr<ContributionView> Map(const v1::MemoryOffer& offer,
                                              const BlockLayout& layout);

  enum class State {
    // Not published yet.
    kMissing,
    // It lies there.
    kHere,
    // Its owner has gone on to a later clock.
    kPassed,
  };
  struct Found {
    State state = State::kMissing;
    // Of kHere.
    uint64_t examples = 0;
    uint64_t begun = 0;
  };
  // Where the owner is with a block's contribution.
  Found Look(uint64_t generation, uint64_t clock, uint32_t block) const;
  // True if everything that was read since Look() found the contribution was that contribution.
  bool Stands(const Found& found, uint64_t clock, uint32_t block) const;
  // The whole vector, which its owner may be writing.
  std::span<const float> values() const { return values_; }

 private:
  std::shared_ptr<SharedMapping> mapping_;
  std::span<const std::atomic<uint64_t>> words_;
  std::span<const float> values_;
};

}  // namespace leeway
