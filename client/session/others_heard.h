// Asks the coordinator whether it hears all processes on which a long wait may depend.
#pragma once

#include <optional>
#include <string>

#include "client/session/coordinator_calls.h"
#include "client/session/session_life.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// While a worker waits, it asks the coordinator four times in each limits.exchange_seconds. If the
// coordinator hears all the others, they are only busy, and the wait may go on as long as they
// need. One thread calls Look(). Any thread may call Lately().
class OthersHeard {
 public:
  // Both arguments must outlive it.
  OthersHeard(CoordinatorCalls& calls, const SessionLife& life) : calls_(calls), life_(life) {}

  // Call this regularly with what the worker waits for, or with an empty string if it does not
  // wait.
  void Look(const std::string& what);
  // Returns true if the coordinator has reported within the last half of limits.exchange_seconds
  // that it hears all the others.
  bool Lately() const;

 private:
  bool Ask();

  CoordinatorCalls& calls_;
  const SessionLife& life_;
  // When the worker began to wait, and when it last asked.
  std::optional<Time> waits_since_;
  Time asked_{};

  mutable Mutex mutex_;
  std::optional<Time> heard_ GUARDED_BY(mutex_);
};

}  // namespace leeway
