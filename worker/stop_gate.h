// Where training stops: between the trainer, which runs clock after clock, and the heartbeats,
// which learn of the end while a clock is running.
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
  // `break_off` ends the exchange in flight; called at most once, without locks.
  explicit StopGate(std::function<void()> break_off) : break_off_(std::move(break_off)) {}

  // False: the clock is at or beyond the end, or the worker is refused; it must not be begun.
  bool Enter(uint64_t clock);
  // The clock that was entered is done, or broken off.
  void Leave();

  // Clocks below `clock` are the last ones; one that runs beyond is broken off.
  void StopAt(uint64_t clock);
  // The coordinator refuses this worker: whatever runs is broken off.
  void Refuse(const absl::Status& why);

  // The end, where it is known.
  std::optional<uint64_t> stop_at() const;
  // Why the worker was refused; OK if it was not.
  absl::Status refused() const;

 private:
  bool PastEnd(uint64_t clock) const REQUIRES(mutex_);
  void BreakOffIfPastEnd();

  const std::function<void()> break_off_;
  mutable Mutex mutex_;
  std::optional<uint64_t> running_ GUARDED_BY(mutex_);
  std::optional<uint64_t> stop_at_ GUARDED_BY(mutex_);
  absl::Status refused_ GUARDED_BY(mutex_);
  bool broken_off_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
