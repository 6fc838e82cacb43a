#include "server/coordinator/worker_state_streams.h"

#include <memory>
#include <utility>

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/queue_event.h"
#include "common/service/server_queue.h"
#include "common/status.h"
#include "server/coordinator/coordinator_host.h"

namespace leeway {
namespace {

// The size of a chunk. It is well below the message limit, and large enough for efficient writes to
// the file.
constexpr size_t kStreamChunkBytes = 1 << 20;

// One operation is pending at a time: the call itself, a read, or the end.
class Receiver final : public QueueEvent {
 public:
  Receiver(CoordinatorHost& host, WorkerStateMethods& service, ServerQueue* queue)
      : host_(host), service_(service), queue_(queue), guest_(queue), reader_(&context_) {
    service.RequestSaveWorkerState(&context_, &reader_, queue->get(), queue->get(), Tag());
  }
  static void Await(CoordinatorHost& host, WorkerStateMethods& service, ServerQueue* queue) {
    queue->IfRunning([&] { new Receiver(host, service, queue); });
  }

  // File operations may take long, so they run on another thread.
  void Run(bool ok) override {
    if (step_ == Step::kEnded || (step_ == Step::kCalled && !ok)) {
      delete this;
    } else {
      queue_->Later([this, ok] { Go(ok); });
    }
  }

 private:
  void Go(bool ok) {
    absl::Status status;
    if (step_ == Step::kCalled) {
      Await(host_, service_, queue_);
      step_ = Step::kReading;
      status = Admit();
    } else {
      status = ok ? Take() : End();
    }
    if (ok && status.ok()) return reader_.Read(&chunk_, Tag());
    step_ = Step::kEnded;
    if (status.ok()) return reader_.Finish({}, grpc::Status::OK, Tag());
    reader_.FinishWithError(Refuse(status, context_), Tag());
  }

  absl::Status Admit() {
    static const CalledMethod kMethod("leeway.v1.Coordinator.SaveWorkerState");
    ASSIGN_OR_RETURN(caller_, queue_->Admit(context_, kMethod));
    return absl::OkStatus();
  }

  absl::Status Take() {
    if (!file_) RETURN_IF_ERROR(Open());
    bytes_.came += chunk_.data().size();
    if (bytes_.announced > 0 && bytes_.came > bytes_.announced) {
      return absl::InvalidArgumentError(absl::StrCat("the state of worker ", sender_.rank, ": ",
                                                     bytes_.came, " bytes came, but only ",
                                                     bytes_.announced, " were announced"));
    }
    return Annotate(file_->Append(chunk_.data()),
                    absl::StrCat("writing the state of worker ", sender_.rank));
  }

  absl::Status Open() {
    sender_ = {chunk_.job(), chunk_.generation(), chunk_.rank(), chunk_.incarnation(),
               chunk_.clock()};
    bytes_.announced = chunk_.size();
    RETURN_IF_ERROR(CheckRank(caller_, sender_.rank));
    RETURN_IF_ERROR(
        host_.Ask([&](CoordinatorCore& core, Time) { return core.CheckWorkerState(sender_); }));
    ASSIGN_OR_RETURN(file_,
                     host_.sink().WriteWorkerState(
                         {sender_.clock, sender_.rank, sender_.incarnation, sender_.generation}));
    return absl::OkStatus();
  }

  // Ends the stream. No more chunks come, because the worker has sent all of them or is gone.
  absl::Status End() {
    if (!file_) return absl::InvalidArgumentError("the stream of a worker's state has no chunk");
    if (bytes_.announced > 0 && bytes_.came != bytes_.announced) {
      return absl::DataLossError(absl::StrCat("the state of worker ", sender_.rank, ": ",
                                              bytes_.came, " of ", bytes_.announced,
                                              " bytes arrived"));
    }
    ASSIGN_OR_RETURN(const v1::SavedShard saved, file_->Finish());
    return host_.Ask([&](CoordinatorCore& core, Time now) {
      return core.WorkerStateSaved(sender_, saved, now);
    });
  }

  enum class Step { kCalled, kReading, kEnded };

  CoordinatorHost& host_;
  WorkerStateMethods& service_;
  ServerQueue* const queue_;
  const ServerQueue::Guest guest_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReader<v1::SaveWorkerStateReply, v1::WorkerStateChunk> reader_;
  Step step_ = Step::kCalled;
  Caller caller_;
  v1::WorkerStateChunk chunk_;
  CoordinatorCore::Sender sender_;
  // Both fields are in bytes.
  struct Size {
    uint64_t announced = 0;
    uint64_t came = 0;
  } bytes_;
  std::unique_ptr<CheckpointSink::StateWriter> file_;
};

// One operation is pending at a time: the call itself, a write, or the end.
class Sender final : public QueueEvent {
 public:
  Sender(CoordinatorHost& host, WorkerStateMethods& service, ServerQueue* queue)
      : host_(host), service_(service), queue_(queue), guest_(queue), writer_(&context_) {
    service.RequestLoadWorkerState(&context_, &request_, &writer_, queue->get(), queue->get(),
                                   Tag());
  }
  static void Await(CoordinatorHost& host, WorkerStateMethods& service, ServerQueue* queue) {
    queue->IfRunning([&] { new Sender(host, service, queue); });
  }

  // File operations may take long, so they run on another thread.
  void Run(bool ok) override {
    if (step_ == Step::kEnded || (step_ == Step::kCalled && !ok)) {
      delete this;
    } else {
      queue_->Later([this, ok] { Go(ok); });
    }
  }

 private:
  void Go(bool ok) {
    if (!ok) return End(absl::CancelledError("the worker went away"));
    if (step_ == Step::kCalled) {
      Await(host_, service_, queue_);
      step_ = Step::kWriting;
      chunk_.set_job(request_.job());
      chunk_.set_rank(request_.rank());
      if (absl::Status status = Open(host_, request_); !status.ok()) return End(status);
    } else {
      chunk_.Clear();
    }
    Next();
  }

  absl::Status Open(CoordinatorHost& host, const v1::LoadWorkerStateRequest& request) {
    static const CalledMethod kMethod("leeway.v1.Coordinator.LoadWorkerState");
    ASSIGN_OR_RETURN(const Caller caller, queue_->Admit(context_, kMethod));
    RETURN_IF_ERROR(CheckRank(caller, request.rank()));
    RETURN_IF_ERROR(host.Ask([&](CoordinatorCore& core, Time) {
      return core.CheckLife(request.job(), request.rank(), request.incarnation());
    }));
    ASSIGN_OR_RETURN(file_, host.sink().ReadWorkerState(request.rank()));
    chunk_.set_clock(file_->clock());
    chunk_.set_size(file_->size());
    return absl::OkStatus();
  }

  void Next() {
    absl::StatusOr<std::string> data = file_->Read(kStreamChunkBytes);
    // An empty state is sent as one empty chunk, because the worker needs its clock.
    if (!data.ok() || (data->empty() && !first_)) return End(data.status());
    first_ = false;
    chunk_.set_data(*std::move(data));
    writer_.Write(chunk_, Tag());
  }

  void End(const absl::Status& status) {
    step_ = Step::kEnded;
    writer_.Finish(status.ok() ? grpc::Status::OK : Refuse(status, context_), Tag());
  }

  enum class Step { kCalled, kWriting, kEnded };

  CoordinatorHost& host_;
  WorkerStateMethods& service_;
  ServerQueue* const queue_;
  const ServerQueue::Guest guest_;
  grpc::ServerContext context_;
  v1::LoadWorkerStateRequest request_;
  grpc::ServerAsyncWriter<v1::WorkerStateChunk> writer_;
  Step step_ = Step::kCalled;
  v1::WorkerStateChunk chunk_;
  bool first_ = true;
  std::unique_ptr<CheckpointSink::StateReader> file_;
};

}  // namespace

void AwaitWorkerStates(CoordinatorHost& host, WorkerStateMethods& service, ServerQueue* queue) {
  Receiver::Await(host, service, queue);
  Sender::Await(host, service, queue);
}

}  // namespace leeway
