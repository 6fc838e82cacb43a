// The methods with which a server leaves the job in order, and reports whether it is ready.
#include <chrono>
#include <utility>

#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "server/node/server_node.h"

namespace leeway {

absl::StatusOr<v1::DrainServerReply> ServerNode::AskToDrain(Duration limit) {
  {
    MutexLock lock(mutex_);
    if (!joined_) return absl::FailedPreconditionError("the server has not joined the job yet");
    leaves_ = true;
  }
  v1::DrainServerRequest request;
  request.set_job(job_id_);
  request.set_index(options_.index);
  request.set_nonce(options_.nonce);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::milliseconds>(limit));
  v1::DrainServerReply reply;
  RETURN_IF_ERROR(ResultOf(coordinator_->DrainServer(&context, request, &reply), context));
  return reply;
}

void ServerNode::Leave() {
  {
    MutexLock lock(mutex_);
    leaves_ = over_ = true;
  }
  changed_.NotifyAll();
}

void ServerNode::TellReadiness() {
  if (!tell_readiness_) return;
  bool ready = false;
  {
    MutexLock lock(mutex_);
    ready = held_generation_.has_value() && !leaves_;
  }
  if (std::exchange(told_ready_, ready) != ready) tell_readiness_(ready);
}

ServerNode::Outcome ServerNode::OutcomeOfEnd() {
  MutexLock lock(mutex_);
  const bool goes_on = job_outcome_ < v1::JOB_FINISHED;
  return leaves_ && goes_on ? Outcome::kDrained : Outcome::kShutDown;
}

}  // namespace leeway
