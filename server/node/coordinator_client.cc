#include "server/node/coordinator_client.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/protocol.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/patient_call.h"
#include "common/status.h"

namespace leeway {
namespace {

// The time limits for reporting a cut: of one attempt, and of all.
constexpr Duration kReportAttempt = std::chrono::seconds(5);
constexpr Duration kReportWithin = std::chrono::seconds(15);

using Stub = v1::Coordinator::Stub;

template <typename Request, typename Reply>
absl::StatusOr<Reply> Call(Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                        Reply*),
                           const Request& request, Duration limit, bool wait = false) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::microseconds>(limit));
  context.set_wait_for_ready(wait);
  Reply reply;
  const grpc::Status status = (stub.*method)(&context, request, &reply);
  RETURN_IF_ERROR(ResultOf(status, context));
  return reply;
}

}  // namespace

CoordinatorClient::CoordinatorClient(Identity self, std::shared_ptr<grpc::Channel> channel)
    : self_(std::move(self)), stub_(v1::Coordinator::NewStub(std::move(channel))) {}

void CoordinatorClient::Serve(const v1::RegisterServerReply& reply) {
  served_ = {reply.job_id(), reply.job(), reply.run_dir()};
}

absl::Status CoordinatorClient::CheckJob(uint64_t job) const {
  if (job == served_.id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", absl::Hex(job), " is not the job of this server (", absl::Hex(served_.id), ")"));
}

absl::StatusOr<v1::RegisterServerReply> CoordinatorClient::Register(std::optional<uint64_t> held,
                                                                    Duration limit,
                                                                    bool wait) const {
  v1::RegisterServerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_index(self_.index);
  request.set_address(self_.advertised);
  request.set_local_address(self_.local_address);
  request.set_host(self_.host);
  request.set_network(self_.network);
  request.set_nonce(self_.nonce);
  request.set_pid(self_.pid);
  request.set_of_worker(self_.of_worker);
  request.set_job(served_.id);
  if (held) request.set_held_generation(*held);
  return Call(*stub_, &Stub::RegisterServer, request, limit, wait);
}

absl::StatusOr<v1::ServerHeartbeatReply> CoordinatorClient::Heartbeat(
    v1::ServerHeartbeatRequest request, Duration limit) const {
  request.set_job(served_.id);
  request.set_index(self_.index);
  request.set_nonce(self_.nonce);
  return Call(*stub_, &Stub::ServerHeartbeat, request, limit);
}

absl::StatusOr<v1::DrainServerReply> CoordinatorClient::Drain(Duration limit) const {
  v1::DrainServerRequest request;
  request.set_job(served_.id);
  request.set_index(self_.index);
  request.set_nonce(self_.nonce);
  return Call(*stub_, &Stub::DrainServer, request, limit);
}

absl::StatusOr<v1::JobStatus> CoordinatorClient::Status(Duration limit) const {
  return Call(*stub_, &Stub::GetJobStatus, v1::GetJobStatusRequest(), limit);
}

absl::Status CoordinatorClient::ReportSaved(v1::ShardSavedRequest request,
                                            std::function<bool(Duration)> pause) const {
  request.set_job(served_.id);
  return CallPatiently(
      {.attempt_max = kReportAttempt, .total = kReportWithin, .pause = std::move(pause)},
      [&](grpc::ClientContext& context) {
        v1::ShardSavedReply reply;
        return stub_->ShardSaved(&context, request, &reply);
      });
}

}  // namespace leeway
