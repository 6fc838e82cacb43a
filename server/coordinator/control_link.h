// The coordinator's calls to one server's ShardControl: in order, one at a time, tried again while
// the server cannot be reached.
#pragma once

#include <deque>
#include <functional>
#include <memory>
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

// Thread-safe, and has no thread of its own: calls run on gRPC's threads, and so do the callbacks.
class ControlLink {
 public:
  ControlLink(std::shared_ptr<grpc::Channel> channel, std::function<Time()> now);
  // Closes.
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;

  using Async = v1::ShardControl::StubInterface::async_interface;

  struct Limits {
    // Of all attempts together; Time::max() for no end.
    Time deadline;
    // Of one attempt.
    Duration attempt = std::chrono::hours(24);
    // Try again while the server cannot be reached.
    bool retry = true;
  };

  // Calls `method` (such as &Async::SetLive) when all calls before it are through.
  // `done(status, reply)` hears how it ended; never after Close has returned.
  template <typename Request, typename Reply, typename Done>
  void Call(void (Async::*method)(grpc::ClientContext*, const Request*, Reply*,
                                  std::function<void(grpc::Status)>),
            const std::type_identity_t<Request>& request, Limits limits, Done done) {
    auto state = std::make_shared<std::pair<Request, Reply>>(request, Reply());
    Pending pending;
    pending.limits = limits;
    pending.start = [this, state, method](grpc::ClientContext* context,
                                          std::function<void(grpc::Status)> finished) {
      // gRPC reads and writes `state` until the end, even if the link is closed before.
      (stub_->async()->*method)(context, &state->first, &state->second,
                                [state, finished = std::move(finished)](grpc::Status status) {
                                  finished(std::move(status));
                                });
    };
    pending.done = [state, done = std::move(done)](const absl::Status& status) {
      done(status, state->second);
    };
    Enqueue(std::move(pending));
  }

  // Begins what has waited long enough to be tried again. To be called now and then.
  void Kick() EXCLUDES(mutex_);

  // Cancels the call in flight, forgets those that wait, and returns when no callback runs any
  // more. Not from a callback.
  void Close() EXCLUDES(mutex_);

 private:
  using Start = std::function<void(grpc::ClientContext*, std::function<void(grpc::Status)>)>;
  struct Pending {
    Limits limits;
    Start start;
    std::function<void(const absl::Status&)> done;
  };

  void Enqueue(Pending pending) EXCLUDES(mutex_);
  void Finished(const absl::Status& status) EXCLUDES(mutex_);
  // Claims the front call for an attempt, which the caller begins without the lock; null if there
  // is nothing to do now.
  Start Next() REQUIRES(mutex_);
  void Begin(const Start& start) EXCLUDES(mutex_);
  // The front call is to be tried again: true, and when is noted.
  bool Retry(const absl::Status& status) REQUIRES(mutex_);

  const std::unique_ptr<v1::ShardControl::Stub> stub_;
  const std::function<Time()> now_;

  Mutex mutex_;
  CondVar idle_;
  std::deque<Pending> queue_ GUARDED_BY(mutex_);
  // Of the attempt in flight, callbacks included; null if there is none.
  std::unique_ptr<grpc::ClientContext> context_ GUARDED_BY(mutex_);
  Time not_before_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
