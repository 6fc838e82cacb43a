// Decides at which clock training stops. The gate stands between the trainer, which runs clock
// after clock, and the heartbeats, which learn of the end while a clock is running.
//
// In sync mode all workers must stop at the same clock s, with every block at version s. The first
// worker that asks where to stop (the asker) does so at a clock c, when its exchange c - 1 is
// complete and it has sent nothing of c. The coordinator then fixes s = c + 1. Workers compute
// clock k while exchange k - 1 is still in progress. This does no harm, because the gate counts
// exchanges, not steps:
// - When s is fixed, nobody has completed exchange c, because it needs the asker's contribution. So
//   nobody has sent anything of clock s = c + 1, and no block is beyond version s.
// - No worker breaks off exchange s - 1. A worker may learn of s while it computes the steps of
//   clock s and others still need its contribution of s - 1. But the gate knows that the exchange
//   in progress is s - 1, which is not past the end. So the worker completes that exchange, and
//   then Enter(s) returns false.
// - A worker that entered s before it learnt of the stop does no harm. Exchange s cannot complete,
//   because the asker learnt of s at once and never sends its contribution of s. When the worker
//   breaks the exchange off, every block is at version s.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "common/mutex.h"

namespace leeway {

// Thread-safe.
class StopGate {
 public:
  // `break_off` ends the worker's calls to the servers. It is called at most once, without locks.
  explicit StopGate(std::function<void()> break_off) : break_off_(std::move(break_off)) {}

  // Asks whether the exchange of a clock may begin. Returns false if the clock is at or beyond the
  // end, or if the worker is refused.
  bool Enter(uint64_t clock);
  // Notes that the exchange that Enter() allowed is complete.
  void Leave();
  // Returns what Enter() would return now.
  bool IsOpen(uint64_t clock) const;

  // Sets the clock at which the job ends. Breaks off an exchange at or beyond that clock.
  void StopAt(uint64_t clock);
  // Notes that the coordinator refuses this worker. Breaks off everything in progress, whether it
  // is an exchange or not.
  void Refuse(const absl::Status& why);

  // Why the worker was refused; OK if it was not.
  absl::Status refused() const;

 private:
  bool PastEnd(uint64_t clock) const REQUIRES(mutex_);

  const std::function<void()> break_off_;
  mutable Mutex mutex_;
  std::optional<uint64_t> running_ GUARDED_BY(mutex_);
  std::optional<uint64_t> stop_at_ GUARDED_BY(mutex_);
  absl::Status refused_ GUARDED_BY(mutex_);
  bool broken_off_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
