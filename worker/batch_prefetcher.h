// Loads batches on threads of its own before they are needed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "worker/data/batch.h"

namespace leeway {

// A batch is a pure function of its key, so neither the number of threads nor the time of loading
// changes it. Thread-safe.
class BatchPrefetcher {
 public:
  // Loads the batch of a key, and overwrites `batch`. Thread-safe. The result for a key is always
  // the same.
  using Load = std::function<absl::Status(uint64_t key, Batch& batch)>;

  // `threads` must be above 0.
  BatchPrefetcher(uint32_t threads, Load load);
  // Waits for the loads in progress.
  ~BatchPrefetcher();
  BatchPrefetcher(const BatchPrefetcher&) = delete;

  // Starts loading these batches, in this order. Batches of other keys are forgotten.
  void Want(std::span<const uint64_t> keys) EXCLUDES(mutex_);
  // Swaps the batch of `key` into `batch`. Waits for a thread that is loading it. If no thread has
  // begun, this thread loads it. Returns the errors of the load, and DEADLINE_EXCEEDED after
  // waiting for `limit`.
  absl::Status Take(uint64_t key, Duration limit, Batch& batch) EXCLUDES(mutex_);

 private:
  enum class State { kWanted, kLoading, kReady };
  struct Slot {
    uint64_t key = 0;
    State state = State::kWanted;
    absl::Status status;
    Batch batch;
  };

  void Run() EXCLUDES(mutex_);
  Slot* Find(uint64_t key) REQUIRES(mutex_);
  // The first batch that is wanted and not begun; null if all are begun.
  Slot* Next() REQUIRES(mutex_);
  void Remove(uint64_t key) REQUIRES(mutex_);
  // A batch whose vectors are used again, or a new one.
  Batch Spare() REQUIRES(mutex_);
  absl::Status LoadOrSay(uint64_t key, Batch& batch) const;

  const Load load_;

  Mutex mutex_;
  CondVar changed_;
  // A few slots, in the order in which their batches are wanted. A batch that is not wanted any
  // more loses its slot, even while it is being loaded.
  std::vector<Slot> slots_ GUARDED_BY(mutex_);
  std::vector<Batch> spare_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace leeway
