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

// A batch is a pure function of its key, so neither the number of threads nor the moment changes
// it. Thread-safe.
class BatchPrefetcher {
 public:
  // Thread-safe; overwrites the batch. The same for a key at any time.
  using Load = std::function<absl::Status(uint64_t key, Batch& batch)>;

  // `threads` > 0.
  BatchPrefetcher(uint32_t threads, Load load);
  // Waits for the loads in progress.
  ~BatchPrefetcher();
  BatchPrefetcher(const BatchPrefetcher&) = delete;

  // Has these loaded, the first of them first. What is loaded of others is forgotten.
  void Want(std::span<const uint64_t> keys) EXCLUDES(mutex_);
  // Swaps the batch in. Waits for a thread that is loading it; where none has begun, this thread
  // loads it. Returns the load's errors, and DEADLINE_EXCEEDED after `limit` of waiting.
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
  // The first that is wanted and not begun; null if there is none.
  Slot* Next() REQUIRES(mutex_);
  void Remove(uint64_t key) REQUIRES(mutex_);
  // Vectors of batches that are used again, or new ones.
  Batch Spare() REQUIRES(mutex_);
  absl::Status LoadOrSay(uint64_t key, Batch& batch) const;

  const Load load_;

  Mutex mutex_;
  CondVar changed_;
  // Few, in the order in which they are wanted. Those that nobody wants any longer are gone, also
  // while they are being loaded.
  std::vector<Slot> slots_ GUARDED_BY(mutex_);
  std::vector<Batch> spare_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace leeway
