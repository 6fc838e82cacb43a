// Memory in which a worker leaves its contributions for another worker of its host. That worker
// adds them up and sends the sum (workers.per_host: combine; client/calls/host_group.h).
//
// The memory holds a control page and the contribution vector. The control page has the job's
// generation and the number of times that the owner has begun. For each block it has a word that
// says which clock's contribution the vector holds, and the number of its examples:
//
//   owner: Publish   writes the values and the examples, then the word (release)
//   reader: Look     reads the word (acquire), then examples and values
//   owner: Withdraw  words = 0, then a full fence; then writes other values
//   reader: Stands   a full fence, then reads the word again, after it has used the values
//
// This is a sequence lock, as in common/shm/shared_memory.h: a result computed from values that
// changed meanwhile is discarded. An owner that has registered again may compute the same
// contribution again. The number of beginnings tells the two apart.
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

// The owner's end. It lives as long as the process. Not thread-safe.
class ContributionMemory {
 public:
  // Makes memory for a model of `total` elements, in any layout of blocks. It reserves address
  // space only; Begin takes the memory. Returns the system's error if it cannot give shared memory.
  static absl::StatusOr<std::unique_ptr<ContributionMemory>> Make(uint64_t total);

  // What the reader needs (ContributionView::Map).
  v1::MemoryOffer Offer() const { return arena_->Offer(); }

  // Call this when the worker has registered. Nothing is published then, and the vector is zeroed.
  // INVALID_ARGUMENT if the memory was made for another model. RESOURCE_EXHAUSTED if the system has
  // no memory for the vector.
  absl::Status Begin(const BlockLayout& layout, uint64_t generation);
  // The vector, valid after Begin: `total` floats, aligned to a page.
  FloatBuffer Vector() const;

  // Declares the vector's blocks to be the contribution of `clock`. They stay unchanged until
  // Withdraw.
  void Publish(uint64_t clock, uint64_t examples, BlockRange blocks);
  // The owner is about to change the vector.
  void Withdraw();

 private:
  ContributionMemory(std::shared_ptr<SharedArena> arena, uint64_t total)
      : arena_(std::move(arena)), total_(total) {}

  const std::shared_ptr<SharedArena> arena_;
  const uint64_t total_;
  // Control page and vector. Null before Begin.
  std::shared_ptr<std::byte> memory_;
  std::span<std::atomic<uint64_t>> words_;
  uint64_t values_ = 0;
};

// The reader's end: another worker's memory. It trusts nothing that it reads there. Thread-safe.
class ContributionView {
 public:
  // Maps the memory as SharedMapping::Map does. INVALID_ARGUMENT if it is too small for this
  // layout.
  static absl::StatusOr<ContributionView> Map(const v1::MemoryOffer& offer,
                                              const BlockLayout& layout);

  enum class State {
    // The contribution is not published yet.
    kMissing,
    // The contribution is in the memory.
    kHere,
    // The owner has gone on to a later clock.
    kPassed,
  };
  struct Found {
    State state = State::kMissing;
    // Set for kHere.
    uint64_t examples = 0;
    uint64_t begun = 0;
  };
  // Says how far the owner is with a block's contribution.
  Found Look(uint64_t generation, uint64_t clock, uint32_t block) const;
  // True if everything that was read since Look() found the contribution belongs to it.
  bool Stands(const Found& found, uint64_t clock, uint32_t block) const;
  // The whole vector. Its owner may be writing to it.
  std::span<const float> values() const { return values_; }

 private:
  std::shared_ptr<SharedMapping> mapping_;
  std::span<const std::atomic<uint64_t>> words_;
  std::span<const float> values_;
};

}  // namespace leeway
