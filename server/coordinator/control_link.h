// The coordinator's calls to one server's ShardControl. They are made in order, one at a time, and
// retried until the server itself answers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/grpc_status.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {

// Thread-safe. The link's own thread makes the calls and runs the callbacks. Between two calls that
// thread does not wait for the network, because only the threads of the server's queue may do so
// (common/service/server_queue.h).
class ControlLink {
 public:
  ControlLink(std::shared_ptr<grpc::Channel> channel, std::function<Time()> now);
  // Calls Close().
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;

  using Stub = v1::ShardControl::StubInterface;

  struct Limits {
    // The time by which all attempts must have ended; Time::max() for no limit.
    Time deadline;
    // The time limit of one attempt.
    Duration attempt = std::chrono::hours(24);
    // How long after its first attempt the call is retried.
    Duration again = std::chrono::hours(24);
  };

  // Calls `method` (such as &Stub::SetLive) after all earlier calls are done, and passes the result
  // to `done(status, reply)`. `done` is not called after Close has returned.
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

  // Cancels the call in flight, drops the queued calls, and returns when no callback is running any
  // more. Must not be called from a callback.
  void Close() EXCLUDES(mutex_);

 private:
  using Attempt = std::function<grpc::Status(grpc::ClientContext*)>;
  struct Pending {
    Limits limits;
    Attempt attempt;
    // The time at which the first attempt began.
    std::optional<Time> began = std::nullopt;
    std::function<void(const absl::Status&)> done;
  };

  void Enqueue(Pending pending) EXCLUDES(mutex_);
  void Loop() EXCLUDES(mutex_);
  // Waits until a call may be tried, and returns it; null once the link is closed.
  Attempt Next() EXCLUDES(mutex_);
  void Finished(const absl::Status& status) EXCLUDES(mutex_);
  // Returns true if the first call must be retried, and then sets the time of the next attempt.
  bool Retry(const absl::Status& status) REQUIRES(mutex_);

  const std::unique_ptr<Stub> stub_;
  const std::function<Time()> now_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Pending> queue_ GUARDED_BY(mutex_);
  // The context of the attempt in flight; null if no attempt is in flight.
  std::unique_ptr<grpc::ClientContext> context_ GUARDED_BY(mutex_);
  Time not_before_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
