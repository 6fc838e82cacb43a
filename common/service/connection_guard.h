// Closes connections that begin calls only to cancel them at once (HTTP/2 rapid reset,
// CVE-2023-44487). This gRPC keeps 7 to 13 KiB of each such call until it has time to release it.
// Under such a load it never has, and none of its own limits counts these calls.
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

// Checks every few milliseconds how many calls the process's gRPC servers have begun. If there are
// many, it checks each of their connections. Only TCP: a peer on a unix socket is of this host and
// user.
class ConnectionGuard {
 public:
  // `now`: what debts are measured by. `strangers`: knows on which connections no call was let in;
  // of those each may begin few. Outlives this object; null: none is known.
  explicit ConnectionGuard(std::function<Time()> now, ConnectionTable* strangers = nullptr);
  ~ConnectionGuard();
  ConnectionGuard(const ConnectionGuard&) = delete;

  // Connections that it has ended.
  uint64_t ended() const { return ended_; }

 private:
  void Loop() EXCLUDES(mutex_);
  // Over in so long, or at the end of the guard, which it tells.
  bool IsOverAfter(Duration pause) EXCLUDES(mutex_);
  void LookAtServer(int64_t server, std::map<int64_t, CallDebt>& debts);
  void LookAtSocket(int64_t socket, CallDebt& debt, Time now);

  const std::function<Time()> now_;
  ConnectionTable* const strangers_;
  std::atomic<uint64_t> ended_{0};
  // Of a server: calls when its connections were looked at last; and those, by gRPC's numbers.
  struct Seen {
    uint64_t calls = 0;
    std::map<int64_t, CallDebt> debts;
  };
  // Of the thread alone.
  std::map<int64_t, Seen> seen_;

  Mutex mutex_;
  CondVar changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
