// Unary methods on the server's completion queue. Each call is accepted, handed to its handler, and
// answered when the handler says so, from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include "absl/status/statusor.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/queue_event.h"
#include "common/status.h"
#include "server/rpc/server_queue.h"

namespace leeway {

// PERMISSION_DENIED if the request is another rank's than the caller may be. Who asks for any rank
// asks for that one.
template <typename Request>
absl::Status HoldToRank(const Caller& caller, Request& request) {
  if constexpr (requires { request.set_rank(0); }) {
    if (!caller.rank) return absl::OkStatus();
    if constexpr (requires { request.has_rank(); }) {
      if (!request.has_rank()) request.set_rank(*caller.rank);
    }
    return CheckRank(caller, request.rank());
  } else {
    return absl::OkStatus();
  }
}

template <typename Request, typename Reply>
class UnaryCall : public QueueEvent {
 public:
  // Called once.
  using Done = std::function<void(absl::StatusOr<Reply>)>;
  using Handler = std::function<void(Request request, Done done)>;
  // The generated Request... method of the service, bound to it.
  using Awaiter =
      std::function<void(grpc::ServerContext*, Request*, grpc::ServerAsyncResponseWriter<Reply>*,
                         grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*)>;
  // Holds the request against who calls, and puts into it what the connection says of its peer;
  // null for nothing. An error is the call's answer.
  using Check = std::function<absl::Status(const Caller&, const grpc::ServerContext&, Request&)>;
  struct Method {
    CalledMethod called;
    Awaiter await = nullptr;
    Handler handle = nullptr;
    Check check = nullptr;
  };

  // Accepts calls of a method from now on, until the queue stops.
  static void Serve(ServerQueue* queue, std::shared_ptr<const Method> method) {
    queue->IfRunning([&] {
      auto* call = new UnaryCall(queue, std::move(method));
      call->method_->await(&call->context_, &call->request_, &call->writer_, queue->get(),
                           queue->get(), call->Tag());
    });
  }

  void Run(bool ok) override {
    // Answered, or no call will come any more.
    if (taken_ || !ok) {
      delete this;
      return;
    }
    taken_ = true;
    Serve(queue_, method_);
    if (const absl::Status status = Admit(); !status.ok()) return Answer(status);
    // The handler owns it: the answer may take long, and this call keeps nothing of it.
    method_->handle(std::exchange(request_, Request()),
                    [this](const absl::StatusOr<Reply>& reply) { Answer(reply); });
  }

 private:
  UnaryCall(ServerQueue* queue, std::shared_ptr<const Method> method)
      : queue_(queue), guest_(queue), method_(std::move(method)), writer_(&context_) {}

  absl::Status Admit() {
    ASSIGN_OR_RETURN(const Caller caller, queue_->Admit(context_, method_->called));
    RETURN_IF_ERROR(HoldToRank(caller, request_));
    return method_->check ? method_->check(caller, context_, request_) : absl::OkStatus();
  }

  void Answer(const absl::StatusOr<Reply>& reply) {
    if (reply.ok()) {
      writer_.Finish(*reply, grpc::Status::OK, Tag());
    } else {
      writer_.FinishWithError(Refuse(reply.status(), context_), Tag());
    }
  }

  ServerQueue* const queue_;
  const ServerQueue::Guest guest_;
  const std::shared_ptr<const Method> method_;
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncResponseWriter<Reply> writer_;
  bool taken_ = false;
};

// The answer of a method that returns only a status.
template <typename Message>
absl::StatusOr<Message> Reply(const absl::Status& status) {
  if (!status.ok()) return status;
  return Message();
}

// Serves a method, leeway.v1.Coordinator.StopJob, whose generated Request... function of `service`
// is given.
template <typename Request, typename Reply, typename Service, typename RequestFunction>
void ServeUnary(ServerQueue* queue, Service* service, const std::string& name,
                RequestFunction request_function,
                typename UnaryCall<Request, Reply>::Handler handler,
                typename UnaryCall<Request, Reply>::Check check = nullptr) {
  using Call = UnaryCall<Request, Reply>;
  auto method = std::make_shared<typename Call::Method>(typename Call::Method{CalledMethod(name)});
  method->await = [service, request_function](auto... arguments) {
    (service->*request_function)(arguments...);
  };
  method->handle = std::move(handler);
  method->check = std::move(check);
  Call::Serve(queue, std::move(method));
}

}  // namespace leeway
