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
#include "server/rpc/server_queue.h"

namespace leeway {

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
  // Puts into the request what the connection says of its peer; null for nothing.
  using Complete = std::function<void(const grpc::ServerContext&, Request&)>;
  struct Method {
    Awaiter await;
    Handler handle;
    Complete complete = nullptr;
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
    if (method_->complete) method_->complete(context_, request_);
    // The handler owns it: the answer may take long, and this call keeps nothing of it.
    method_->handle(std::exchange(request_, Request()), [this](absl::StatusOr<Reply> reply) {
      if (reply.ok()) {
        writer_.Finish(*reply, grpc::Status::OK, Tag());
      } else {
        writer_.FinishWithError(Refuse(reply.status(), context_), Tag());
      }
    });
  }

 private:
  UnaryCall(ServerQueue* queue, std::shared_ptr<const Method> method)
      : queue_(queue), guest_(queue), method_(std::move(method)), writer_(&context_) {}

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

// Serves the method whose generated Request... function of `service` is given.
template <typename Request, typename Reply, typename Service, typename RequestFunction>
void ServeUnary(ServerQueue* queue, Service* service, RequestFunction request_function,
                typename UnaryCall<Request, Reply>::Handler handler,
                typename UnaryCall<Request, Reply>::Complete complete = nullptr) {
  using Call = UnaryCall<Request, Reply>;
  auto method = std::make_shared<typename Call::Method>();
  method->await = [service, request_function](auto... arguments) {
    (service->*request_function)(arguments...);
  };
  method->handle = std::move(handler);
  method->complete = std::move(complete);
  Call::Serve(queue, std::move(method));
}

}  // namespace leeway
