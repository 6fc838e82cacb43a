// Closes connections that begin calls only to cancel them at once (HTTP/2 rapid reset,
// CVE-2023-44487). gRPC 1.51 keeps 7 to 13 KiB for each such call until it has time to release the
// memory. Under such a load it never has time, and its own limits do not count these calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/connection_table.h"
#include "common/service/call_debt.h"

namespace leeway {

// Checks every few milliseconds how many calls the process's gRPC servers have begun. If the number
// is large, it checks each connection of these servers. Only TCP connections are checked, because a
// peer on a unix socket is on this host and has the same user.
class ConnectionGuard {
 public:
  // `now` is the clock for debts. `strangers` knows the connections on which no call was admitted.
  // Each of these connections may begin only a few calls. `strangers` must outlive this object. If
  // it is null, no connection is treated as a stranger.
  explicit ConnectionGuard(std::function<Time()> now, ConnectionTable* strangers = nullptr);
  ~ConnectionGuard();
  ConnectionGuard(const ConnectionGuard&) = delete;

  // Returns the number of connections that the guard has ended.
  uint64_t ended() const { return ended_; }

 private:
  void Loop() EXCLUDES(mutex_);
  // Waits for `pause`, or until the guard ends. Returns true if the guard ends.
  bool IsOverAfter(Duration pause) EXCLUDES(mutex_);
  void LookAtServer(int64_t server, std::map<int64_t, CallDebt>& debts);
  void LookAtSocket(int64_t socket, CallDebt& debt, Time now);

  const std::function<Time()> now_;
  ConnectionTable* const strangers_;
  std::atomic<uint64_t> ended_{0};
  // What the guard knows about one server: the number of calls at the last check of its
  // connections, and the debt of each connection. The key of a debt is gRPC's number for the
  // socket.
  struct Seen {
    uint64_t calls = 0;
    std::map<int64_t, CallDebt> debts;
  };
  // Only the guard's thread uses this field.
  std::map<int64_t, Seen> seen_;

  Mutex mutex_;
  CondVar changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
