// Whether the processes that a long wait may depend on are alive, as the coordinator hears them.
#pragma once

#include <optional>
#include <string>

#include "client/session/coordinator_calls.h"
#include "client/session/session_life.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// A worker that waits asks the coordinator four times in each limits.exchange_seconds. If it hears
// all the others, they are busy, and the wait may go on as long as they need. Look() is called by
// one thread; Lately() by any.
class OthersHeard {
 public:
  // `calls` outlives it.
  explicit OthersHeard(CoordinatorCalls& calls) : calls_(calls) {}

  void Begin(const SessionLife& life) { life_ = life; }
  // The worker waits for `what`; empty: it does not wait.
  void Look(const std::string& what);
  // True if the coordinator has said so within half of limits.exchange_seconds.
  bool Lately() const;

 private:
  bool Ask();

  CoordinatorCalls& calls_;
  // Constant after Begin().
  SessionLife life_;
  // Since when the worker waits, and when it last asked.
  std::optional<Time> waits_since_;
  Time asked_{};

  mutable Mutex mutex_;
  std::optional<Time> heard_ GUARDED_BY(mutex_);
};

}  // namespace leeway
