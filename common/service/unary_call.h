// Unary methods on the server's completion queue. Each call is admitted by its metadata, then read,
// then passed to its handler. The handler answers the call from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/queue_event.h"
#include "common/service/server_queue.h"
#include "common/status.h"

namespace leeway {

// Returns PERMISSION_DENIED if the request names another rank than the caller's. If the request
// asks for any rank, changes it to ask for the caller's rank.
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
  using Stream = grpc::ServerAsyncReaderWriter<Reply, Request>;
  // Answers the call. The handler calls it once.
  using Done = std::function<void(absl::StatusOr<Reply>)>;
  using Handler = std::function<void(Request request, Done done)>;
  // Accepts the next call of the method.
  using Awaiter =
      std::function<void(grpc::ServerContext*, Stream*, grpc::ServerCompletionQueue*, void* tag)>;
  // Reads the message of a call.
  using Reader = std::function<void(Stream&, Request*, void* tag)>;
  // Checks whether the caller may make this request, and adds facts about the peer to the request.
  // If null, there is no check. If it returns an error, the call is answered with that error.
  using Check = std::function<absl::Status(const Caller&, const grpc::ServerContext&, Request&)>;
  struct Method {
    CalledMethod called;
    Awaiter await = nullptr;
    Reader read = [](Stream& stream, Request* request, void* tag) { stream.Read(request, tag); };
    Handler handle = nullptr;
    Check check = nullptr;
  };

  // Accepts calls of a method from now on, until the queue stops.
  static void Serve(ServerQueue* queue, std::shared_ptr<const Method> method) {
    queue->IfRunning([&] {
      auto* call = new UnaryCall(queue, std::move(method));
      call->method_->await(&call->context_, &call->stream_, queue->get(), call->Tag());
    });
  }

  void Run(bool ok) override {
    // Delete this object if the call was answered, or if the queue ends and no call will come.
    if (step_ == Step::kEnded || (step_ == Step::kAwaited && !ok)) {
      delete this;
    } else if (step_ == Step::kAwaited) {
      Serve(queue_, method_);
      Admit();
    } else {
      Handle(ok);
    }
  }

 private:
  enum class Step { kAwaited, kReading, kEnded };

  UnaryCall(ServerQueue* queue, std::shared_ptr<const Method> method)
      : queue_(queue), guest_(queue), method_(std::move(method)), stream_(&context_) {}

  // Checks by the call's metadata whether the caller may call this method. If not, the call is
  // refused and its message is not read.
  void Admit() {
    absl::StatusOr<Caller> caller = queue_->Admit(context_, method_->called);
    if (!caller.ok()) {
      step_ = Step::kEnded;
      return Answer(caller.status());
    }
    caller_ = *std::move(caller);
    step_ = Step::kReading;
    method_->read(stream_, &request_, Tag());
  }

  void Handle(bool came) {
    step_ = Step::kEnded;
    const absl::Status status =
        came ? CheckRequest()
             : absl::InvalidArgumentError(absl::StrCat(
                   method_->called.name, ": the call's message is missing or malformed"));
    if (!status.ok()) return Answer(status);
    // Move the request to the handler, because the answer may take long and this object must not
    // keep the request's memory.
    method_->handle(std::exchange(request_, Request()),
                    [this](const absl::StatusOr<Reply>& reply) { Answer(reply); });
  }

  absl::Status CheckRequest() {
    RETURN_IF_ERROR(HoldToRank(caller_, request_));
    return method_->check ? method_->check(caller_, context_, request_) : absl::OkStatus();
  }

  void Answer(const absl::StatusOr<Reply>& reply) {
    if (reply.ok()) {
      stream_.WriteAndFinish(*reply, grpc::WriteOptions(), grpc::Status::OK, Tag());
    } else {
      stream_.Finish(Refuse(reply.status(), context_), Tag());
    }
  }

  ServerQueue* const queue_;
  const ServerQueue::Guest guest_;
  const std::shared_ptr<const Method> method_;
  grpc::ServerContext context_;
  Request request_;
  Stream stream_;
  Caller caller_;
  Step step_ = Step::kAwaited;
};

// Returns the answer of a method that returns only a status.
template <typename Message>
absl::StatusOr<Message> Reply(const absl::Status& status) {
  if (!status.ok()) return status;
  return Message();
}

// Serves a unary method of an AdmittedService. `name` is its full name, such as
// leeway.v1.Coordinator.StopJob.
template <typename Request, typename Reply, typename Service>
void ServeUnary(ServerQueue* queue, Service* service, const std::string& name,
                typename UnaryCall<Request, Reply>::Handler handler,
                typename UnaryCall<Request, Reply>::Check check = nullptr) {
  using Call = UnaryCall<Request, Reply>;
  auto method = std::make_shared<typename Call::Method>(typename Call::Method{CalledMethod(name)});
  const int number =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name)->index();
  method->await = [service, number](auto* context, auto* stream, auto* calls, void* tag) {
    service->RequestCall(number, context, stream, calls, tag);
  };
  method->handle = std::move(handler);
  method->check = std::move(check);
  Call::Serve(queue, std::move(method));
}

}  // namespace leeway
