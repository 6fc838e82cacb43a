// The order in which an epoch goes through the examples.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/mutex.h"

namespace leeway {

// A permutation of `rows` for each epoch, which is a pure function of (seed, epoch, rank). Keeps
// the two permutations that were requested last. All steps of an epoch need the same permutation,
// and prefetching needs the permutation of the next epoch. Thread-safe. If two threads need a
// missing permutation at the same time, both compute it, so that no thread holds the lock while it
// shuffles.
class EpochOrder {
 public:
  using Rows = std::vector<uint32_t>;

  // Makes an order. Without `rank`, all workers get the same permutation.
  EpochOrder(uint64_t seed, std::optional<uint32_t> rank, Rows rows);

  std::shared_ptr<const Rows> Of(uint64_t epoch) const EXCLUDES(mutex_);
  size_t size() const { return rows_.size(); }

 private:
  Rows Shuffled(uint64_t epoch) const;

  const uint64_t seed_;
  const std::optional<uint32_t> rank_;
  const Rows rows_;

  mutable Mutex mutex_;
  struct Kept {
    uint64_t epoch = 0;
    std::shared_ptr<const Rows> order;
  };
  // The permutations that are kept, the newer one first. Unused entries are null.
  mutable std::array<Kept, 2> kept_ GUARDED_BY(mutex_);
};

}  // namespace leeway
