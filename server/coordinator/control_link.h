// The coordinator's calls to one server's ShardControl: in order, one at a time, tried again while
// the server cannot be reached.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/grpc_status.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {

// Thread-safe. A thread of its own makes the calls and runs the callbacks: between two calls
// nothing of it waits on the network, which belongs to the server's own queue
// (server/rpc/server_queue.h).
class ControlLink {
 public:
  ControlLink(std::shared_ptr<grpc::Channel> channel, std::function<Time()> now);
  // Closes.
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;

  using Stub = v1::ShardControl::StubInterface;

  struct Limits {
    // Of all attempts together; Time::max() for no end.
    Time deadline;
    // Of one attempt.
    Duration attempt = std::chrono::hours(24);
    // Try again while the server cannot be reached.
    bool retry = true;
  };

  // Calls `method` (such as &Stub::SetLive) when all calls before it are through.
  // `done(status, reply)` hears how it ended; never after Close has returned.
  template <typename Request, typename Reply, typename Done>
  void Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
            const std::type_identity_t<Request>& request, Limits limits, Done done) {
    auto reply = std::make_shared<Reply>();
    Pending pending;
    pending.limits = limits;
    pending.attempt = [this, method, request, reply](grpc::ClientContext* context) {
      return (stub_.get()->*method)(context, request, reply.get());
    };
    pending.done = [reply, done = std::move(done)](const absl::Status& status) {
      done(status, *reply);
    };
    Enqueue(std::move(pending));
  }

  // Cancels the call in flight, forgets those that wait, and returns when no callback runs any
  // more. Not from a callback.
  void Close() EXCLUDES(mutex_);

 private:
  using Attempt = std::function<grpc::Status(grpc::ClientContext*)>;
  struct Pending {
    Limits limits;
    Attempt attempt;
    std::function<void(const absl::Status&)> done;
  };

  void Enqueue(Pending pending) EXCLUDES(mutex_);
  void Loop() EXCLUDES(mutex_);
  // Waits for a call that may be tried now; null once closed.
  Attempt Next() EXCLUDES(mutex_);
  void Finished(const absl::Status& status) EXCLUDES(mutex_);
  // The front call is to be tried again: true, and when is noted.
  bool Retry(const absl::Status& status) REQUIRES(mutex_);

  const std::unique_ptr<Stub> stub_;
  const std::function<Time()> now_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Pending> queue_ GUARDED_BY(mutex_);
  // Of the attempt in flight; null if there is none.
  std::unique_ptr<grpc::ClientContext> context_ GUARDED_BY(mutex_);
  Time not_before_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
