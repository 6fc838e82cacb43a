// Sends many idempotent calls to several servers, with a window of calls in flight for each server.
// Each call is sent again until it is answered. The queue does not know what the calls say.
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

// A list of calls, numbered 0..size-1, which one ticket stands for. The methods may run on several
// threads at once, for different calls.
class Operation {
 public:
  virtual ~Operation() = default;

  virtual uint32_t size() const = 0;
  virtual uint32_t ServerOf(uint32_t call) const = 0;
  // Calls with a lower number go first.
  virtual uint32_t Priority(uint32_t call) const { return 0; }
  // Size of the request's payload.
  virtual uint64_t Bytes(uint32_t call) const { return 0; }
  // Text for messages: "PushPull of block 3 at clock 17".
  virtual std::string Describe(uint32_t call) const = 0;
  // The request has the same payload at every attempt.
  virtual TransportRequest Request(uint32_t call) const = 0;
  // Runs at most once for each call, unless it returns UNAVAILABLE. The call is then sent again.
  // Any other error is final.
  virtual absl::Status TakeReply(uint32_t call, const TransportReply& reply) = 0;
};

// Calls to a server go out by priority. Calls of equal priority go out in the order of their
// operations and numbers.
//
// The window cannot deadlock a barrier. A server may hold a call until every worker has made the
// same one. Workers may begin their calls in different orders, and each may fill its window with
// calls that the others have not made. But a call that comes before all of the server's calls in
// flight is never kept waiting by the window. So once all workers have begun their calls, the first
// unanswered call of a server, by priority, is in flight from all of them, and the server answers
// it.
//
// Thread-safe.
class CallQueue {
 public:
  struct Options {
    // Calls in flight to each server. The number may rise to window_max if more are needed to fill
    // the link (TransitWindow).
    uint32_t window = 16;
    uint32_t window_max = 16;
    // Limit of one attempt. It is longer than a server holds a call before it says who is missing.
    Duration attempt_timeout = std::chrono::seconds(40);
    RetryLimits retry;
    // Source of the random back-off times.
    RandomStream jitter;
    // Called when a server could not be reached, or answered at once that it does not have what was
    // asked for: it may have moved. Called without locks, from any thread. May be empty.
    std::function<void()> on_unreached = {};
    // Asked whenever a server says whom a call waits for. True: the coordinator hears those
    // processes, so the wait goes on beyond the limit. Called without locks, from any thread.
    // Empty: no wait goes on.
    std::function<bool()> goes_on = {};
  };

  // Stands for a started operation. It can be copied, and is empty by default.
  class Ticket;

  CallQueue(std::unique_ptr<Transport> transport, uint32_t servers, const Options& options);
  // Cancels, and returns when no callback is running any more.
  ~CallQueue();

  Transport& transport() { return *transport_; }

  // Memory that requests and replies refer to stays valid until Wait() has returned OK, or until
  // the queue is destroyed.
  Ticket Start(std::shared_ptr<Operation> operation);

  // Returns the first error of the operation's calls as soon as there is one, and OK when all are
  // answered. DEADLINE_EXCEEDED if neither has happened by `deadline`: the operation goes on, and
  // the caller may wait for it again. CANCELLED after Cancel().
  absl::Status Wait(const Ticket& ticket, Time deadline);
  // True if Wait() would return at once.
  bool IsOver(const Ticket& ticket) const EXCLUDES(mutex_);

  // Returns when no call of the operation is in progress any more, however it ended. The memory
  // that the calls refer to then belongs to the caller again. If one call has failed, calls that
  // have not begun never begin.
  void Settle(const Ticket& ticket);

  // Says what the earliest postponed call in flight waits for, in its server's words. Empty if no
  // call was postponed.
  std::string Waiting() const;

  // From now on the server is at `endpoint`.
  void MoveServer(uint32_t server, const ServerEndpoint& endpoint);

  // Ends every operation with CANCELLED, also operations that are started later.
  void Cancel();

 private:
  struct Run;
  class Call;
  using CallPointer = std::shared_ptr<Call>;
  // The calls to one server.
  struct Lane {
    // A heap, with the next call to send in front.
    std::vector<CallPointer> waiting;
    // Calls in flight that must be sent again at once.
    std::deque<CallPointer> again;
    // In the order of their first attempts.
    std::list<CallPointer> in_flight;
    TransitWindow transit;
  };

  // Sends the calls that must be sent again, and those that the server's windows have room for.
  void Pump(uint32_t server);
  bool HasRoom(const Lane& lane, const Call& first) const REQUIRES(mutex_);
  // Drops the calls of failed operations that have not begun.
  void DropFailed(Lane& lane) REQUIRES(mutex_);
  void SendAgain(const CallPointer& call);
  void OnAccepted(const CallPointer& call);
  std::optional<Duration> OnMissing(const CallPointer& call, const std::string& missing);
  void OnDone(const CallPointer& call, absl::Status status, const TransportReply& reply);
  // The attempt no longer loads the link. Arrived: the server has it. Lost: nobody knows.
  void Arrived(Call& call) REQUIRES(mutex_);
  void Lost(Call& call, Time now) REQUIRES(mutex_);
  RetryCore& RetryOf(Call& call) REQUIRES(mutex_);
  // An attempt failed with `status`.
  RetryDecision Decide(const CallPointer& call, const absl::Status& status);
  // Sends the call again after its pause.
  void Resume(const CallPointer& call);
  void Finish(const CallPointer& call, const absl::Status& status);
  // Waits until `done` of the ticket's run. False after `deadline`.
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
