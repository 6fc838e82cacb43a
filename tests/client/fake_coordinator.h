// A fake coordinator, which answers as told and records what it was told.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway::testing {

// Answers over gRPC within the process. Set the fields before the first call. Methods return what
// was heard, from any thread.
class FakeCoordinator final : public v1::Coordinator::Service {
 public:
  FakeCoordinator() {
    grpc::ServerBuilder builder;
    int port = 0;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~FakeCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  // What RegisterWorker answers.
  v1::RegisterWorkerReply registration;
  // The answer to a client that only asks for the job.
  std::optional<v1::TrainingJob> offer;
  // By method, called for every attempt: an error replaces the answer.
  std::function<absl::Status(const std::string& method)> refuse;
  // Fills in the answer to a heartbeat.
  std::function<void(const v1::HeartbeatRequest&, v1::HeartbeatReply&)> on_heartbeat;
  // Fills in the answer to a request for batches.
  std::function<void(const v1::LeaseDataRequest&, v1::LeaseDataReply&)> on_lease;
  // What GetJobStatus answers.
  v1::JobStatus status;
  uint64_t stop_at = 0;
  // What LoadWorkerState loads.
  std::optional<v1::WorkerStateChunk> state;

  // Its lock orders the fields set so far before the handlers, visibly for ThreadSanitizer.
  const std::string& address() const {
    MutexLock lock(mutex_);
    return address_;
  }
  std::shared_ptr<grpc::Channel> channel() const { return MakeChannel(address()); }

  // How long the latest call of `method`, which must exist, was allowed to take.
  Duration limit(const std::string& method) const {
    MutexLock lock(mutex_);
    return limits_.at(method);
  }
  int calls(const std::string& method) const {
    MutexLock lock(mutex_);
    const auto found = calls_.find(method);
    return found == calls_.end() ? 0 : found->second;
  }
  std::vector<v1::RegisterWorkerRequest> registrations() const {
    MutexLock lock(mutex_);
    return registrations_;
  }
  std::vector<v1::HeartbeatRequest> heartbeats() const {
    MutexLock lock(mutex_);
    return heartbeats_;
  }
  std::vector<v1::StopAtRequest> stops() const {
    MutexLock lock(mutex_);
    return stops_;
  }
  std::vector<v1::LeaveRequest> leaves() const {
    MutexLock lock(mutex_);
    return leaves_;
  }
  // By clock.
  std::map<uint64_t, std::string> saved() const {
    MutexLock lock(mutex_);
    return saved_;
  }
  int chunks() const {
    MutexLock lock(mutex_);
    return chunks_;
  }
  void WaitForHeartbeats(size_t count) {
    MutexLock lock(mutex_);
    while (heartbeats_.size() < count) heard_.Wait(mutex_);
  }

  grpc::Status RegisterWorker(grpc::ServerContext* context,
                              const v1::RegisterWorkerRequest* request,
                              v1::RegisterWorkerReply* reply) override {
    if (auto status = Enter("RegisterWorker", context); !status.ok()) return status;
    MutexLock lock(mutex_);
    registrations_.push_back(*request);
    *reply = registration;
    if (offer && request->job_only()) *reply->mutable_job() = *offer;
    return grpc::Status::OK;
  }
  grpc::Status ProbeLink(grpc::ServerContext* context, const v1::ProbeLinkRequest* request,
                         v1::ProbeLinkReply* reply) override {
    if (auto status = Enter("ProbeLink", context); !status.ok()) return status;
    reply->set_payload(request->payload());
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext* context, const v1::HeartbeatRequest* request,
                         v1::HeartbeatReply* reply) override {
    if (auto status = Enter("Heartbeat", context); !status.ok()) return status;
    if (on_heartbeat) on_heartbeat(*request, *reply);
    MutexLock lock(mutex_);
    heartbeats_.push_back(*request);
    heard_.NotifyAll();
    return grpc::Status::OK;
  }
  grpc::Status GetJobStatus(grpc::ServerContext* context, const v1::GetJobStatusRequest*,
                            v1::JobStatus* reply) override {
    if (auto entered = Enter("GetJobStatus", context); !entered.ok()) return entered;
    *reply = status;
    return grpc::Status::OK;
  }
  grpc::Status LeaseData(grpc::ServerContext* context, const v1::LeaseDataRequest* request,
                         v1::LeaseDataReply* reply) override {
    if (auto status = Enter("LeaseData", context); !status.ok()) return status;
    if (on_lease) on_lease(*request, *reply);
    return grpc::Status::OK;
  }
  grpc::Status StopAt(grpc::ServerContext* context, const v1::StopAtRequest* request,
                      v1::StopAtReply* reply) override {
    if (auto status = Enter("StopAt", context); !status.ok()) return status;
    reply->set_stop_at(stop_at);
    MutexLock lock(mutex_);
    stops_.push_back(*request);
    return grpc::Status::OK;
  }
  // How many leaving workers were told that the job may still go back.
  size_t unsealed_leaves = 0;
  grpc::Status Leave(grpc::ServerContext* context, const v1::LeaveRequest* request,
                     v1::LeaveReply* reply) override {
    if (auto status = Enter("Leave", context); !status.ok()) return status;
    MutexLock lock(mutex_);
    leaves_.push_back(*request);
    reply->set_sealed(leaves_.size() > unsealed_leaves);
    return grpc::Status::OK;
  }
  grpc::Status SaveWorkerState(grpc::ServerContext* context,
                               grpc::ServerReader<v1::WorkerStateChunk>* reader,
                               v1::SaveWorkerStateReply*) override {
    if (auto status = Enter("SaveWorkerState", context); !status.ok()) return status;
    std::string bytes;
    std::optional<uint64_t> clock;
    int chunks = 0;
    for (v1::WorkerStateChunk chunk; reader->Read(&chunk); ++chunks) {
      if (!clock) clock = chunk.clock();
      bytes += chunk.data();
    }
    MutexLock lock(mutex_);
    saved_[clock.value_or(0)] = bytes;
    chunks_ = chunks;
    return grpc::Status::OK;
  }
  grpc::Status LoadWorkerState(grpc::ServerContext* context, const v1::LoadWorkerStateRequest*,
                               grpc::ServerWriter<v1::WorkerStateChunk>* writer) override {
    if (auto status = Enter("LoadWorkerState", context); !status.ok()) return status;
    if (!state) return Refuse(absl::NotFoundError("no state"), *context);
    v1::WorkerStateChunk head = *state, tail;
    tail.set_data(head.data().substr(head.data().size() / 2));
    head.mutable_data()->resize(head.data().size() / 2);
    writer->Write(head);
    writer->Write(tail);
    return grpc::Status::OK;
  }

 private:
  grpc::Status Enter(const std::string& method, grpc::ServerContext* context) {
    {
      MutexLock lock(mutex_);
      ++calls_[method];
      limits_[method] = std::chrono::duration_cast<Duration>(context->deadline() -
                                                             std::chrono::system_clock::now());
    }
    const absl::Status status = refuse ? refuse(method) : absl::OkStatus();
    return status.ok() ? grpc::Status::OK : Refuse(status, *context);
  }

  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  mutable Mutex mutex_;
  CondVar heard_;
  std::map<std::string, int> calls_ GUARDED_BY(mutex_);
  std::map<std::string, Duration> limits_ GUARDED_BY(mutex_);
  std::vector<v1::RegisterWorkerRequest> registrations_ GUARDED_BY(mutex_);
  std::vector<v1::HeartbeatRequest> heartbeats_ GUARDED_BY(mutex_);
  std::vector<v1::StopAtRequest> stops_ GUARDED_BY(mutex_);
  std::vector<v1::LeaveRequest> leaves_ GUARDED_BY(mutex_);
  std::map<uint64_t, std::string> saved_ GUARDED_BY(mutex_);
  int chunks_ GUARDED_BY(mutex_) = 0;
};

}  // namespace leeway::testing
