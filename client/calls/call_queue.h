// Sends many idempotent calls to several servers, with a window of calls in flight for each server.
// Each call is sent again until it is answered. The queue does not know what the calls contain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/core/retry_core.h"
#include "client/transport/transit_window.h"
#include "client/transport/transport.h"
#include "common/mutex.h"

namespace leeway {

// A list of calls, numbered 0..size-1, with one ticket for all of them. Several threads may run the
// methods at the same time, for different calls.
class Operation {
 public:
  virtual ~Operation() = default;

  virtual uint32_t size() const = 0;
  virtual uint32_t ServerOf(uint32_t call) const = 0;
  // The call's priority. Calls with a lower value are sent first.
  virtual uint32_t Priority(uint32_t call) const { return 0; }
  // The size of the request's payload.
  virtual uint64_t Bytes(uint32_t call) const { return 0; }
  // Describes the call for messages: "PushPull of block 3 at clock 17".
  virtual std::string Describe(uint32_t call) const = 0;
  // Returns the call's request, which has the same payload at every attempt.
  virtual TransportRequest Request(uint32_t call) const = 0;
  // Handles the call's reply. If this returns UNAVAILABLE, the queue sends the call again and
  // passes the new reply to this method. Any other result is final.
  virtual absl::Status TakeReply(uint32_t call, const TransportReply& reply) = 0;
  // Returns false if a failed call need not be sent again. It then ends with UNAVAILABLE.
  virtual bool IsWanted() const { return true; }
  // Called once, without locks, when no call of the operation is in progress any more. `status` is
  // the operation's result. May run before CallQueue::Start returns.
  virtual void OnOver(const absl::Status& status) {}
};

// Calls to a server go out by priority. Calls of equal priority go out in the order of their
// operations and numbers.
//
// The window cannot deadlock a barrier. A server may hold a call until every worker has made the
// same call. Workers may begin their calls in different orders, and each may fill its window with
// calls that the others have not made. But if a call has a higher priority than all calls in flight
// to its server, it goes out even if the window is full. Take the unanswered call that comes first
// by priority: once all workers have begun their calls, all of them have sent this call, and the
// server answers it.
//
// Thread-safe.
class CallQueue {
 public:
  struct Options {
    // The number of calls in flight to each server. It may rise to window_max if more calls are
    // needed to fill the link (TransitWindow).
    uint32_t window = 16;
    uint32_t window_max = 16;
    // The time limit of one attempt. It is longer than the time that a server holds a call before
    // it reports who is missing.
    Duration attempt_timeout = std::chrono::seconds(40);
    RetryLimits retry;
    // The source of the random back-off times.
    RandomStream jitter;
    // Called when a server may have moved: the queue could not reach it, or it answered at once
    // that it does not have the requested block. Called without locks, from any thread. May be
    // empty.
    std::function<void()> on_unreached = {};
    // Called whenever a server reports the processes for which a call waits. Returns true if the
    // coordinator hears those processes, so that the call may wait beyond its limit. Called without
    // locks, from any thread. If empty, no call waits beyond its limit.
    std::function<bool()> goes_on = {};
  };

  // Refers to a started operation. It can be copied, and is empty by default.
  class Ticket;

  CallQueue(std::unique_ptr<Transport> transport, uint32_t servers, const Options& options);
  // Cancels all operations, and returns when no callback is running any more.
  ~CallQueue();

  Transport& transport() { return *transport_; }

  // Starts the operation's calls. Requests and replies refer to the caller's memory, which must
  // stay valid until Wait() has returned OK or the queue is destroyed.
  Ticket Start(std::shared_ptr<Operation> operation);

  // Waits for the operation. Returns an error as soon as one of its calls fails, and OK when all
  // its calls are answered. Returns DEADLINE_EXCEEDED if neither has happened by `deadline`. The
  // operation then goes on, and the caller may wait for it again. Returns CANCELLED after Cancel().
  absl::Status Wait(const Ticket& ticket, Time deadline);
  // Returns true if Wait() would return at once.
  bool IsOver(const Ticket& ticket) const EXCLUDES(mutex_);

  // Waits until no call of the operation is in progress any more, whether the operation failed or
  // not. Then the caller may reuse the memory to which the calls refer. After one call has failed,
  // no further call of the operation begins.
  void Settle(const Ticket& ticket);

  // Returns, in its server's words, what the earliest postponed call in flight waits for. Returns
  // an empty string if no call was postponed.
  std::string Waiting() const;

  // Sends all further requests for the server to `endpoint`.
  void MoveServer(uint32_t server, const ServerEndpoint& endpoint);

  // Ends every operation with CANCELLED, including operations that are started later.
  void Cancel();

 private:
  struct Run;
  class Call;
  using CallPointer = std::shared_ptr<Call>;
  // Operations that are over, and their results, for OnOver.
  using Ends = std::vector<std::pair<std::shared_ptr<Operation>, absl::Status>>;
  static void Tell(const Ends& ends);
  // The calls to one server.
  struct Lane {
    // The calls that have not begun, as a heap. The next call to send is in front.
    std::vector<CallPointer> waiting;
    // Calls in flight that must be sent again at once.
    std::deque<CallPointer> again;
    // The calls in flight, in the order of their first attempts.
    std::list<CallPointer> in_flight;
    TransitWindow transit;
  };

  // Sends the calls that must be sent again, then waiting calls until the server's windows are
  // full.
  void Pump(uint32_t server);
  // Returns the next call to send, or null if the server's windows are full.
  CallPointer TakeNext(uint32_t server) REQUIRES(mutex_);
  bool HasRoom(const Lane& lane, const Call& first) const REQUIRES(mutex_);
  // Drops the calls of failed operations that have not begun.
  void DropFailed(Lane& lane, Ends& ends) REQUIRES(mutex_);
  // Takes one call off the run. If it was the last one, adds the run to `ends`.
  void TakeOff(Run& run, Ends& ends) REQUIRES(mutex_);
  void SendAgain(const CallPointer& call);
  void OnAccepted(const CallPointer& call);
  std::optional<Duration> OnMissing(const CallPointer& call, const std::string& missing);
  void OnDone(const CallPointer& call, absl::Status status, const TransportReply& reply);
  // Both record that the attempt no longer loads the link. Arrived says that the server has the
  // request. Lost says that this is not known.
  void Arrived(Call& call) REQUIRES(mutex_);
  void Lost(Call& call, Time now) REQUIRES(mutex_);
  RetryCore& RetryOf(Call& call) REQUIRES(mutex_);
  // Decides what to do after an attempt has failed with `status`.
  RetryDecision Decide(const CallPointer& call, const absl::Status& status);
  // Sends the call again after its pause.
  void Resume(const CallPointer& call);
  void Finish(const CallPointer& call, const absl::Status& status);
  // Waits until `done` of the ticket's run returns true. Returns false if `deadline` comes first.
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
