// Many idempotent calls to several servers, a window of them in flight per server, each sent again
// until it is answered. Knows nothing of what the calls say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "worker/client/retry_core.h"
#include "worker/client/transport.h"

namespace leeway {

// What one ticket stands for: a list of calls, numbered 0..size-1. Its methods may run on several
// threads at once, for different calls.
class Operation {
 public:
  virtual ~Operation() = default;

  // As in "/leeway.v1.ParameterServer/Push".
  virtual const std::string& method() const = 0;
  virtual uint32_t size() const = 0;
  virtual uint32_t ServerOf(uint32_t call) const = 0;
  // For messages: "PushPull of block 3 at clock 17".
  virtual std::string Describe(uint32_t call) const = 0;
  // The same bytes at every attempt.
  virtual grpc::ByteBuffer Request(uint32_t call) const = 0;
  // At most once a call. An error is final.
  virtual absl::Status TakeReply(uint32_t call, const grpc::ByteBuffer& reply) = 0;
};

// Calls go out in the order of their operations and, within one, of their numbers.
//
// Why a window cannot deadlock a barrier: a server may hold a call until every worker has made the
// same one. Take the earliest call, in the common order, that is not answered. All workers have
// been answered every earlier one, so in each of them it is either in flight or the next to be
// sent, for a held call keeps its place in the window while it is being retried; so all of them
// send it, and it is answered. This needs nothing but that all workers send a server's blocks in
// the same order, which is why ParameterClient sends them ascending.
//
// Thread-safe.
class CallQueue {
 public:
  struct Options {
    // Calls in flight per server.
    uint32_t window = 0;
    // Of one attempt; the server answers earlier.
    Duration attempt_timeout{};
    RetryLimits retry;
    // Of the pauses' jitter; no bearing on results.
    RandomStream jitter;
  };
  // Stands for a started operation. Copyable; empty by default.
  class Ticket;

  CallQueue(std::unique_ptr<Transport> transport, uint32_t servers, const Options& options);
  // Cancels, and returns when no callback runs any more.
  ~CallQueue();

  // Memory that requests and replies refer to stays valid until Wait() has returned OK, or the
  // queue is gone.
  Ticket Start(std::shared_ptr<Operation> operation);

  // The first error of the operation's calls, at once; OK when all are answered. DEADLINE_EXCEEDED
  // if neither by `deadline`: the operation goes on, and may be waited for again. CANCELLED after
  // Cancel().
  absl::Status Wait(const Ticket& ticket, Time deadline);

  // What the earliest call in flight that was put off waits for, in its server's words; empty if
  // none was.
  std::string Waiting() const;

  // Every operation ends with CANCELLED, also those started later.
  void Cancel();

 private:
  struct Run;
  struct Call;
  using CallPointer = std::shared_ptr<Call>;
  // One server's.
  struct Lane {
    std::deque<CallPointer> waiting;
    uint32_t in_flight = 0;
  };

  // Sends what the server's window has room for.
  void Pump(uint32_t server);
  void Send(const CallPointer& call);
  void OnDone(const CallPointer& call, const absl::Status& status, const grpc::ByteBuffer& reply);
  // An attempt failed with `status`.
  RetryDecision Decide(const CallPointer& call, const absl::Status& status);
  // After a pause.
  void Resume(const CallPointer& call);
  void Finish(const CallPointer& call, const absl::Status& status);
  std::string FirstWaiting() const REQUIRES(mutex_);

  // Constant after construction.
  const Options options_;
  const uint32_t servers_;
  const std::unique_ptr<Transport> transport_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Lane> lanes_ GUARDED_BY(mutex_);
  // In order of their first attempt.
  std::list<CallPointer> in_flight_ GUARDED_BY(mutex_);
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
