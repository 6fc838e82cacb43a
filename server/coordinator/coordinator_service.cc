#include "server/coordinator/coordinator_service.h"

#include <utility>

#include "common/grpc_status.h"
#include "server/coordinator/coordinator_host.h"
#include "server/coordinator/worker_state_streams.h"

namespace leeway {
namespace {

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

template <typename Reply>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, absl::StatusOr<Reply> answer,
                                 Reply* reply) {
  if (answer.ok()) *reply = *std::move(answer);
  return Answer(context, answer.status());
}

}  // namespace

grpc::ServerUnaryReactor* CoordinatorService::RegisterServer(
    grpc::CallbackServerContext* context, const v1::RegisterServerRequest* request,
    v1::RegisterServerReply* reply) {
  return Answer(context, host_.Ask([&](CoordinatorCore& core, Time now) {
    return core.RegisterServer(*request, now);
  }),
                reply);
}

grpc::ServerUnaryReactor* CoordinatorService::RegisterWorker(
    grpc::CallbackServerContext* context, const v1::RegisterWorkerRequest* request,
    v1::RegisterWorkerReply* reply) {
  return Answer(context, host_.Ask([&](CoordinatorCore& core, Time now) {
    return core.RegisterWorker(*request, now);
  }),
                reply);
}

grpc::ServerUnaryReactor* CoordinatorService::Heartbeat(grpc::CallbackServerContext* context,
                                                        const v1::HeartbeatRequest* request,
                                                        v1::HeartbeatReply* reply) {
  return Answer(context, host_.Ask([&](CoordinatorCore& core, Time now) {
    return core.Heartbeat(*request, now);
  }),
                reply);
}

grpc::ServerUnaryReactor* CoordinatorService::ServerHeartbeat(
    grpc::CallbackServerContext* context, const v1::ServerHeartbeatRequest* request,
    v1::ServerHeartbeatReply* reply) {
  return Answer(context, host_.Ask([&](CoordinatorCore& core, Time now) {
    return core.ServerHeartbeat(*request, now);
  }));
}

grpc::ServerUnaryReactor* CoordinatorService::StopAt(grpc::CallbackServerContext* context,
                                                     const v1::StopAtRequest* request,
                                                     v1::StopAtReply* reply) {
  return Answer(context, host_.Ask([&](CoordinatorCore& core, Time now) {
    return core.StopAt(*request, now);
  }),
                reply);
}

grpc::ServerUnaryReactor* CoordinatorService::Leave(grpc::CallbackServerContext* context,
                                                    const v1::LeaveRequest* request,
                                                    v1::LeaveReply* reply) {
  return Answer(context, host_.Ask([&](CoordinatorCore& core, Time now) {
    return core.Leave(*request, now);
  }));
}

grpc::ServerUnaryReactor* CoordinatorService::ShardSaved(grpc::CallbackServerContext* context,
                                                         const v1::ShardSavedRequest* request,
                                                         v1::ShardSavedReply* reply) {
  return Answer(context, host_.Ask([&](CoordinatorCore& core, Time now) {
    return core.ShardSaved(*request, now);
  }));
}

grpc::ServerReadReactor<v1::WorkerStateChunk>* CoordinatorService::SaveWorkerState(
    grpc::CallbackServerContext* context, v1::SaveWorkerStateReply* reply) {
  return ReceiveWorkerState(host_);
}

grpc::ServerWriteReactor<v1::WorkerStateChunk>* CoordinatorService::LoadWorkerState(
    grpc::CallbackServerContext* context, const v1::LoadWorkerStateRequest* request) {
  return SendWorkerState(host_, *request);
}

grpc::ServerUnaryReactor* CoordinatorService::GetJobStatus(grpc::CallbackServerContext* context,
                                                           const v1::GetJobStatusRequest* request,
                                                           v1::JobStatus* reply) {
  *reply = host_.Status();
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* CoordinatorService::StopJob(grpc::CallbackServerContext* context,
                                                      const v1::StopJobRequest* request,
                                                      v1::StopJobReply* reply) {
  host_.StopJob(request->reason());
  return Answer(context, absl::OkStatus());
}

}  // namespace leeway
