// Checks the strangers that are connected to a port.
#pragma once

#include <chrono>
#include <thread>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/connection_table.h"

namespace leeway {

// Calls ConnectionTable::EndTalkers regularly while a stranger is connected. It needs a thread of
// its own, because the thread that passes a connection to gRPC may also read from it inside gRPC. A
// header that does not end keeps that thread busy.
class TalkerWatch {
 public:
  static constexpr Duration kEvery = std::chrono::milliseconds(20);

  // `table` outlives this object.
  explicit TalkerWatch(ConnectionTable* table);
  ~TalkerWatch();
  TalkerWatch(const TalkerWatch&) = delete;

  // Call this function when a connection has arrived.
  void Wake() EXCLUDES(mutex_);

 private:
  void Run() EXCLUDES(mutex_);
  // Both functions wait, and return false if the watch is ending.
  bool WaitForConnection() EXCLUDES(mutex_);
  bool WaitForNextLook() EXCLUDES(mutex_);

  ConnectionTable* const table_;
  Mutex mutex_;
  CondVar changed_;
  bool came_ GUARDED_BY(mutex_) = false;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
