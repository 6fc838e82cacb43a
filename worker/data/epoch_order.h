// The order in which an epoch goes through the examples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/mutex.h"

namespace leeway {

// A permutation of `rows` for each epoch, a pure function of (seed, epoch, rank). The one asked for
// last is kept, because an epoch's steps all want the same. Thread-safe; two threads that miss at
// once both compute, so no lock is held while shuffling.
class EpochOrder {
 public:
  using Rows = std::vector<uint32_t>;

  // Without `rank` all workers get the same permutation.
  EpochOrder(uint64_t seed, std::optional<uint32_t> rank, Rows rows);

  std::shared_ptr<const Rows> Of(uint64_t epoch) const EXCLUDES(mutex_);
  size_t size() const { return rows_.size(); }

 private:
  Rows Shuffled(uint64_t epoch) const;

  const uint64_t seed_;
  const std::optional<uint32_t> rank_;
  const Rows rows_;

  mutable Mutex mutex_;
  mutable uint64_t epoch_ GUARDED_BY(mutex_) = 0;
  mutable std::shared_ptr<const Rows> last_ GUARDED_BY(mutex_);
};

}  // namespace leeway
