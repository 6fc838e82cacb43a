// Loads batches before they are needed, on its own threads.
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
// changes the batch. Thread-safe.
class BatchPrefetcher {
 public:
  // Loads the batch of a key, and overwrites `batch`. The function must be thread-safe, and must
  // always load the same batch for a key.
  using Load = std::function<absl::Status(uint64_t key, Batch& batch)>;

  // `threads` must be above 0.
  BatchPrefetcher(uint32_t threads, Load load);
  // Waits for the batches that are being loaded.
  ~BatchPrefetcher();
  BatchPrefetcher(const BatchPrefetcher&) = delete;

  // Starts loading the batches of these keys, in this order. Forgets the batches of all other keys.
  void Want(std::span<const uint64_t> keys) EXCLUDES(mutex_);
  // Swaps the batch of `key` into `batch`. If another thread is loading the batch, waits for that
  // thread. If no thread has begun to load it, the calling thread loads it. Returns the errors of
  // the load, and DEADLINE_EXCEEDED after waiting for `limit`.
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
  // Returns the first wanted batch that no thread has begun to load, or null if there is no such
  // batch.
  Slot* Next() REQUIRES(mutex_);
  void Remove(uint64_t key) REQUIRES(mutex_);
  // Returns a batch whose vectors can be used again, or a new batch.
  Batch Spare() REQUIRES(mutex_);
  absl::Status LoadOrSay(uint64_t key, Batch& batch) const;

  const Load load_;

  Mutex mutex_;
  CondVar changed_;
  // A few slots, in the order in which their batches are wanted. If a batch is not wanted any more,
  // its slot is removed, even while the batch is being loaded.
  std::vector<Slot> slots_ GUARDED_BY(mutex_);
  std::vector<Batch> spare_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace leeway
