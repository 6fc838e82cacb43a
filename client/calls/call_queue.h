// Many idempotent calls to several servers, a window of them in flight per server, each sent again
// until it is answered. Knows nothing of what the calls say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/core/retry_core.h"
#include "client/transport/transit_window.h"
#include "client/transport/transport.h"
#include "common/mutex.h"

namespace leeway {

// What one ticket stands for: a list of calls, numbered 0..size-1. Its methods may run on several
// threads at once, for different calls.
class Operation {
 public:
  virtual ~Operation() = default;

  virtual uint32_t size() const = 0;
  virtual uint32_t ServerOf(uint32_t call) const = 0;
  // Lower goes first.
  virtual uint32_t Priority(uint32_t call) const { return 0; }
  // Of the request's payload.
  virtual uint64_t Bytes(uint32_t call) const { return 0; }
  // For messages: "PushPull of block 3 at clock 17".
  virtual std::string Describe(uint32_t call) const = 0;
  // Has the same payload at every attempt.
  virtual TransportRequest Request(uint32_t call) const = 0;
  // At most once a call unless it answers UNAVAILABLE, whereupon the call is sent again. Any other
  // error is final.
  virtual absl::Status TakeReply(uint32_t call, const TransportReply& reply) = 0;
};

// Calls to a server go out by priority, equal ones in the order of their operations and numbers.
//
// Why the window cannot deadlock a barrier: a server may hold a call until every worker has made
// the same one, and workers may begin their calls in different orders, each filling its window with
// calls that the others have not made. But the window is never in the way of a call that comes
// before all of the server's that are in flight. So once all workers have begun their calls, the
// first unanswered one of a server, in the order of priorities, is in flight from all of them, and
// is answered.
//
// Thread-safe.
class CallQueue {
 public:
  struct Options {
    // Calls in flight per server, and at most where what is sent takes more to fill the link
    // (TransitWindow).
    uint32_t window = 16;
    uint32_t window_max = 16;
    // Of one attempt. Longer than a server holds a wait before it says who is missing.
    Duration attempt_timeout = std::chrono::seconds(40);
    RetryLimits retry;
    // Where backoff times are drawn from.
    RandomStream jitter;
    // A server could not be reached, or does not have what is asked for, and said so at once: it
    // may be elsewhere by now. Without locks, from any thread; empty: nobody wants to know.
    std::function<void()> on_unreached = {};
    // Whether a wait goes on beyond the limit, whenever its server says whom it is for: they are
    // heard. Without locks, from any thread; empty: none does.
    std::function<bool()> goes_on = {};
  };

  // Stands for a started operation. Copyable; empty by default.
  class Ticket;

  CallQueue(std::unique_ptr<Transport> transport, uint32_t servers, const Options& options);
  // Cancels, and returns when no callback runs any more.
  ~CallQueue();

  Transport& transport() { return *transport_; }

  // Memory that requests and replies refer to stays valid until Wait() has returned OK, or the
  // queue is gone.
  Ticket Start(std::shared_ptr<Operation> operation);

  // The first error of the operation's calls, at once; OK when all are answered. DEADLINE_EXCEEDED
  // if neither by `deadline`: the operation goes on, and may be waited for again. CANCELLED after
  // Cancel().
  absl::Status Wait(const Ticket& ticket, Time deadline);
  // Wait() would not wait.
  bool IsOver(const Ticket& ticket) const EXCLUDES(mutex_);

  // Returns when no call of the operation is under way any more, however it ended: the memory that
  // they refer to is the caller's again. Calls that were not yet begun when one failed never are.
  void Settle(const Ticket& ticket);

  // What the earliest call in flight that was put off waits for, in its server's words; empty if
  // none was.
  std::string Waiting() const;

  // The server is there from now on.
  void MoveServer(uint32_t server, const ServerEndpoint& endpoint);

  // Every operation ends with CANCELLED, also those started later.
  void Cancel();

 private:
  struct Run;
  class Call;
  using CallPointer = std::shared_ptr<Call>;
  // One server's.
  struct Lane {
    // A heap: the first to go in front.
    std::vector<CallPointer> waiting;
    // In flight, and to be sent once more at once.
    std::deque<CallPointer> again;
    // In order of their first attempt.
    std::list<CallPointer> in_flight;
    TransitWindow transit;
  };

  // Sends what is to be sent again, and what the server's windows have room for.
  void Pump(uint32_t server);
  bool HasRoom(const Lane& lane, const Call& first) const REQUIRES(mutex_);
  // What is left of an operation that has failed is not begun.
  void DropFailed(Lane& lane) REQUIRES(mutex_);
  void SendAgain(const CallPointer& call);
  void OnAccepted(const CallPointer& call);
  std::optional<Duration> OnMissing(const CallPointer& call, const std::string& missing);
  void OnDone(const CallPointer& call, absl::Status status, const TransportReply& reply);
  // The attempt no longer loads the link: the server has it, or who knows.
  void Arrived(Call& call) REQUIRES(mutex_);
  void Lost(Call& call, Time now) REQUIRES(mutex_);
  RetryCore& RetryOf(Call& call) REQUIRES(mutex_);
  // An attempt failed with `status`.
  RetryDecision Decide(const CallPointer& call, const absl::Status& status);
  // After a pause.
  void Resume(const CallPointer& call);
  void Finish(const CallPointer& call, const absl::Status& status);
  // Until `done` of the ticket's run; false after `deadline`.
  bool WaitUntil(const Ticket& ticket, bool (Run::*done)() const, Time deadline) EXCLUDES(mutex_);
  std::string FirstWaiting() const REQUIRES(mutex_);

  // Constant after construction.
  const Options options_;
  const uint32_t servers_;
  const std::unique_ptr<Transport> transport_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Lane> lanes_ GUARDED_BY(mutex_);
  uint64_t sequence_ GUARDED_BY(mutex_) = 0;
  RandomStream jitter_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
};

class CallQueue::Ticket {
 public:
  Ticket() = default;

 private:
  friend class CallQueue;
  std::shared_ptr<Run> run_;
};

}  // namespace leeway
