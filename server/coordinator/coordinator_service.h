// The gRPC adaptor: each message is one question to the core, answered at once; streams of worker
// state go between the network and the checkpoint sink. Callback API: no thread waits for anybody.
#pragma once

#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {

class CoordinatorHost;

// Thread-safe.
class CoordinatorService final : public v1::Coordinator::CallbackService {
 public:
  explicit CoordinatorService(CoordinatorHost& host) : host_(host) {}

  grpc::ServerUnaryReactor* RegisterServer(grpc::CallbackServerContext* context,
                                           const v1::RegisterServerRequest* request,
                                           v1::RegisterServerReply* reply) override;
  grpc::ServerUnaryReactor* RegisterWorker(grpc::CallbackServerContext* context,
                                           const v1::RegisterWorkerRequest* request,
                                           v1::RegisterWorkerReply* reply) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatReply* reply) override;
  grpc::ServerUnaryReactor* ServerHeartbeat(grpc::CallbackServerContext* context,
                                            const v1::ServerHeartbeatRequest* request,
                                            v1::ServerHeartbeatReply* reply) override;
  grpc::ServerUnaryReactor* StopAt(grpc::CallbackServerContext* context,
                                   const v1::StopAtRequest* request,
                                   v1::StopAtReply* reply) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request, v1::LeaveReply* reply) override;
  grpc::ServerUnaryReactor* ShardSaved(grpc::CallbackServerContext* context,
                                       const v1::ShardSavedRequest* request,
                                       v1::ShardSavedReply* reply) override;
  grpc::ServerReadReactor<v1::WorkerStateChunk>* SaveWorkerState(
      grpc::CallbackServerContext* context, v1::SaveWorkerStateReply* reply) override;
  grpc::ServerWriteReactor<v1::WorkerStateChunk>* LoadWorkerState(
      grpc::CallbackServerContext* context, const v1::LoadWorkerStateRequest* request) override;
  grpc::ServerUnaryReactor* GetJobStatus(grpc::CallbackServerContext* context,
                                         const v1::GetJobStatusRequest* request,
                                         v1::JobStatus* reply) override;
  grpc::ServerUnaryReactor* StopJob(grpc::CallbackServerContext* context,
                                    const v1::StopJobRequest* request,
                                    v1::StopJobReply* reply) override;

 private:
  CoordinatorHost& host_;
};

}  // namespace leeway
