// Memory in which a worker leaves its contributions for the leader, another worker of its host. The
// leader adds the contributions of the host's workers up and sends the sum (workers.per_host:
// combine; client/calls/host_group.h).
//
// The memory holds a control page and the contribution vector. The control page has the job's
// generation, and the number of times that the owner has called Begin. For each block it has a word
// with the clock whose contribution the vector holds, and the number of that contribution's
// examples:
//
//   owner: Publish   writes the values and the examples, then the word (release)
//   reader: Look     reads the word (acquire), then examples and values
//   owner: Withdraw  words = 0, then a full fence; then writes other values
//   reader: Stands   a full fence, then reads the word again, after it has used the values
//
// This is a sequence lock, as in common/shm/shared_memory.h: the reader discards a result if the
// values changed while it computed. An owner that has registered again may publish the same clock
// again. The number of Begin calls tells the two contributions apart.
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

// The memory as its owner sees it. It lives as long as the process. Not thread-safe.
class ContributionMemory {
 public:
  // Reserves address space for a model of `total` elements, in any layout of blocks; Begin
  // allocates the memory. If the operating system supplies no shared memory, returns its error.
  static absl::StatusOr<std::unique_ptr<ContributionMemory>> Make(uint64_t total);

  // Returns what the reader needs to map the memory (ContributionView::Map).
  v1::MemoryOffer Offer() const { return arena_->Offer(); }

  // Prepares the memory for a new registration of the worker. Afterwards nothing is published, and
  // the vector is zero. Returns INVALID_ARGUMENT if the memory was made for another model. Returns
  // RESOURCE_EXHAUSTED if the operating system has no memory for the vector.
  absl::Status Begin(const BlockLayout& layout, uint64_t generation);
  // Returns the vector: `total` floats, aligned to a page. Valid after Begin.
  FloatBuffer Vector() const;

  // Publishes the vector's values of `blocks` as the contribution of `clock`. The caller does not
  // change them until it calls Withdraw.
  void Publish(uint64_t clock, uint64_t examples, BlockRange blocks);
  // Withdraws the published contributions. The owner calls this before it changes the vector.
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

// The memory as a reader sees it: a view of another worker's memory. It checks everything that it
// reads there. Thread-safe.
class ContributionView {
 public:
  // Maps the offered memory as SharedMapping::Map does. Returns INVALID_ARGUMENT if the memory is
  // too small for this layout.
  static absl::StatusOr<ContributionView> Map(const v1::MemoryOffer& offer,
                                              const BlockLayout& layout);

  enum class State {
    // The contribution is not published yet.
    kMissing,
    // The contribution is in the memory.
    kHere,
    // The owner is at a later clock already.
    kPassed,
  };
  struct Found {
    State state = State::kMissing;
    // The number of the contribution's examples. Set for kHere.
    uint64_t examples = 0;
    uint64_t begun = 0;
  };
  // Finds out whether the owner has published a block's contribution.
  Found Look(uint64_t generation, uint64_t clock, uint32_t block) const;
  // Returns true if all values that were read since Look() returned `found` belong to the
  // contribution that Look() found.
  bool Stands(const Found& found, uint64_t clock, uint32_t block) const;
  // The whole vector. The owner may be writing to it.
  std::span<const float> values() const { return values_; }

 private:
  std::shared_ptr<SharedMapping> mapping_;
  std::span<const std::atomic<uint64_t>> words_;
  std::span<const float> values_;
};

}  // namespace leeway
