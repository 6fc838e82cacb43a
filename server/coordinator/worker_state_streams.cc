#include "server/coordinator/worker_state_streams.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "server/coordinator/coordinator_host.h"

namespace leeway {
namespace {

// Well below the message limit; large enough that the file sees long writes.
constexpr size_t kChunkBytes = 1 << 20;

class Receiver final : public grpc::ServerReadReactor<v1::WorkerStateChunk> {
 public:
  explicit Receiver(CoordinatorHost& host) : host_(host) { StartRead(&chunk_); }

  void OnReadDone(bool ok) override {
    const absl::Status status = ok ? Take() : End();
    if (ok && status.ok()) {
      StartRead(&chunk_);
    } else {
      Finish(ToGrpc(status));
    }
  }
  void OnDone() override { delete this; }

 private:
  absl::Status Take() {
    if (!file_) RETURN_IF_ERROR(Open());
    received_ += chunk_.data().size();
    return Annotate(file_->Append(chunk_.data()),
                    absl::StrCat("writing the state of worker ", rank_));
  }

  absl::Status Open() {
    rank_ = chunk_.rank();
    incarnation_ = chunk_.incarnation();
    clock_ = chunk_.clock();
    size_ = chunk_.size();
    RETURN_IF_ERROR(host_.Ask([&](CoordinatorCore& core, Time) {
      return core.CheckWorkerState(chunk_.job(), rank_, incarnation_, clock_);
    }));
    ASSIGN_OR_RETURN(file_, host_.sink().WriteWorkerState(clock_, rank_, incarnation_));
    return absl::OkStatus();
  }

  // No more chunks: the worker has sent all, or is gone.
  absl::Status End() {
    if (cancelled_) return absl::CancelledError("the worker went away");
    if (!file_) return absl::InvalidArgumentError("the state of a worker without any chunk");
    if (size_ > 0 && received_ != size_) {
      return absl::DataLossError(absl::StrCat("the state of worker ", rank_, ": ", received_,
                                              " of ", size_, " bytes arrived"));
    }
    ASSIGN_OR_RETURN(const v1::SavedShard saved, file_->Finish());
    return host_.Ask([&](CoordinatorCore& core, Time now) {
      return core.WorkerStateSaved(rank_, incarnation_, clock_, saved, now);
    });
  }

  void OnCancel() override { cancelled_ = true; }

  CoordinatorHost& host_;
  std::atomic<bool> cancelled_ = false;
  v1::WorkerStateChunk chunk_;
  uint32_t rank_ = 0;
  uint64_t incarnation_ = 0;
  uint64_t clock_ = 0;
  // What was announced, and what came.
  uint64_t size_ = 0;
  uint64_t received_ = 0;
  std::unique_ptr<CheckpointSink::StateWriter> file_;
};

class Sender final : public grpc::ServerWriteReactor<v1::WorkerStateChunk> {
 public:
  Sender(CoordinatorHost& host, const v1::LoadWorkerStateRequest& request) {
    chunk_.set_job(request.job());
    chunk_.set_rank(request.rank());
    const absl::Status status = Open(host, request);
    status.ok() ? Next() : Finish(ToGrpc(status));
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the worker went away"));
    chunk_.Clear();
    Next();
  }
  void OnDone() override { delete this; }

 private:
  absl::Status Open(CoordinatorHost& host, const v1::LoadWorkerStateRequest& request) {
    RETURN_IF_ERROR(host.Ask([&](CoordinatorCore& core, Time) -> absl::Status {
      RETURN_IF_ERROR(core.CheckJob(request.job()));
      if (request.rank() < core.workers()) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", request.rank(), " of a job with ", core.workers(), " workers"));
    }));
    ASSIGN_OR_RETURN(file_, host.sink().ReadWorkerState(request.rank()));
    chunk_.set_clock(file_->clock());
    chunk_.set_size(file_->size());
    return absl::OkStatus();
  }

  void Next() {
    absl::StatusOr<std::string> data = file_->Read(kChunkBytes);
    // An empty state is one empty chunk: its clock must be told.
    if (!data.ok() || (data->empty() && !first_)) return Finish(ToGrpc(data.status()));
    first_ = false;
    chunk_.set_data(*std::move(data));
    StartWrite(&chunk_);
  }

  v1::WorkerStateChunk chunk_;
  bool first_ = true;
  std::unique_ptr<CheckpointSink::StateReader> file_;
};

}  // namespace

grpc::ServerReadReactor<v1::WorkerStateChunk>* ReceiveWorkerState(CoordinatorHost& host) {
  return new Receiver(host);
}

grpc::ServerWriteReactor<v1::WorkerStateChunk>* SendWorkerState(
    CoordinatorHost& host, const v1::LoadWorkerStateRequest& request) {
  return new Sender(host, request);
}

}  // namespace leeway
