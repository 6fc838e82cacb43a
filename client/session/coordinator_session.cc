#include "client/session/coordinator_session.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "common/backoff.h"
#include "common/protocol.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"

namespace leeway {
namespace {

// The time limit of one attempt to register. It is long enough for a large model's schema, and
// short enough to report soon that the coordinator does not answer.
constexpr Duration kRegisterAttempt = std::chrono::seconds(5);
constexpr Duration kAtOnce = std::chrono::milliseconds(500);
// How long a leaving worker waits for the first answer. It is short, because the coordinator may
// have ended.
constexpr Duration kLeaveWithin = std::chrono::seconds(10);
// The limits of the pause between two requests to leave. The shortest pause is short compared with
// the time for the last checkpoint. The longest pause keeps the coordinator's load low even with
// ten thousand workers.
constexpr Duration kSealedPauseMin = std::chrono::milliseconds(20);
constexpr Duration kSealedPauseMax = std::chrono::seconds(1);

}  // namespace

bool SameLife(const v1::RegisterWorkerReply& a, const v1::RegisterWorkerReply& b) {
  return a.incarnation() == b.incarnation() && a.generation() == b.generation();
}

CoordinatorSession::CoordinatorSession(std::shared_ptr<grpc::Channel> channel, Options options)
    : options_(std::move(options)),
      calls_(std::move(channel), {.address = options_.address,
                                  .nonce = options_.nonce,
                                  .sleep = options_.sleep,
                                  .now = options_.now}),
      heartbeats_(calls_, life_) {}

absl::Status CoordinatorSession::Call(
    const std::string& what, const std::function<grpc::Status(grpc::ClientContext&)>& attempt,
    CallBreaker* breaker) {
  return calls_.Call(what, life_.Patience(), attempt, breaker);
}

absl::Status CoordinatorSession::Move(
    const std::string& what, const std::function<grpc::Status(grpc::ClientContext&)>& attempt) {
  RetryLimits limits = life_.Patience();
  if (life_.exchange_limit > limits.total) {
    limits = Within(life_.exchange_limit, "limits.exchange_seconds");
  }
  // An attempt has the whole limit, because the state may be large and the link slow. If the
  // coordinator is gone, the connection breaks and ends the attempt earlier.
  return calls_.Call(what, limits, attempt, nullptr, limits.total);
}

v1::RegisterWorkerRequest CoordinatorSession::Filled(v1::RegisterWorkerRequest request) const {
  *request.mutable_build() = ThisBuild();
  request.set_host(options_.host);
  request.set_network(options_.network);
  request.set_pid(options_.pid);
  request.set_nonce(options_.nonce);
  return request;
}

absl::StatusOr<v1::RegisterWorkerReply> CoordinatorSession::SendRegister(
    const v1::RegisterWorkerRequest& request, const std::string& what, const RetryLimits& limits) {
  v1::RegisterWorkerReply reply;
  bool answered = false;
  const auto attempt = [&](grpc::ClientContext& context) {
    // Between calls no thread drives the connection, so the call waits until the connection is
    // ready. Otherwise this worker would notice a coordinator that starts during a pause only when
    // the attempt to connect times out.
    context.set_wait_for_ready(true);
    context.set_deadline(std::min(context.deadline(), After(kRegisterAttempt)));
    grpc::Status status = calls_.stub().RegisterWorker(&context, request, &reply);
    answered |= status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
    // If the coordinator has answered, its status already names the processes that it waits for.
    if (answered) return status;
    // A second call does not wait for the connection, so its error says why the connection fails.
    grpc::ClientContext at_once;
    at_once.set_deadline(After(kAtOnce));
    const grpc::Status why = calls_.stub().RegisterWorker(&at_once, request, &reply);
    answered = why.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED &&
               why.error_code() != grpc::StatusCode::UNAVAILABLE;
    if (answered) return why;
    const bool known = why.error_code() == grpc::StatusCode::UNAVAILABLE;
    return grpc::Status(
        grpc::StatusCode::UNAVAILABLE,
        absl::StrCat("no answer yet; is server 0 running, and is this its address?",
                     known ? absl::StrCat(" (", InPlainWords(why.error_message()), ")") : ""));
  };
  RETURN_IF_ERROR(calls_.Call(what, limits, attempt, options_.registrations));
  return reply;
}

absl::StatusOr<v1::RegisterWorkerReply> CoordinatorSession::FetchJob(std::optional<uint32_t> rank,
                                                                     Duration limit) {
  v1::RegisterWorkerRequest request = Filled();
  if (rank.has_value()) request.set_rank(*rank);
  request.set_job_only(true);
  return SendRegister(request, "asking for the job", Within(limit, "--start-seconds"));
}

absl::StatusOr<v1::RegisterWorkerReply> CoordinatorSession::FetchModel(Duration limit) {
  v1::RegisterWorkerRequest request = Filled();
  request.set_reads_only(true);
  return SendRegister(request, "asking for the model", Within(limit, "the reader's limit"));
}

absl::StatusOr<v1::RegisterWorkerReply> CoordinatorSession::Register(
    v1::RegisterWorkerRequest request, Duration limit) {
  ASSIGN_OR_RETURN(v1::RegisterWorkerReply reply,
                   SendRegister(Filled(std::move(request)), "registering",
                                Within(limit, "limits.start_seconds")));
  life_ = SessionLife::Of(reply, limit);
  heartbeats_.Begin(reply);
  return reply;
}

absl::StatusOr<uint64_t> CoordinatorSession::StopAt(uint64_t clock) {
  v1::StopAtRequest request;
  life_.Sign(request);
  request.set_clock(clock);
  v1::StopAtReply reply;
  RETURN_IF_ERROR(Call("asking where to stop", [&](grpc::ClientContext& context) {
    return calls_.stub().StopAt(&context, request, &reply);
  }));
  return reply.stop_at();
}

absl::StatusOr<v1::LeaseDataReply> CoordinatorSession::LeaseData(v1::LeaseDataRequest request) {
  life_.Sign(request);
  v1::LeaseDataReply reply;
  RETURN_IF_ERROR(Call(
      "asking for batches",
      [&](grpc::ClientContext& context) {
        return calls_.stub().LeaseData(&context, request, &reply);
      },
      &leases_));
  return reply;
}

absl::Status CoordinatorSession::Leave(v1::LeaveReason reason, uint64_t clock,
                                       const std::string& message) {
  EndHeartbeats();
  SetClock(clock);
  // Sends the last metrics. The worker leaves even if this fails.
  heartbeats_.Beat().IgnoreError();
  v1::LeaveRequest request;
  life_.Sign(request);
  request.set_clock(clock);
  request.set_reason(reason);
  request.set_message(message);
  request.set_waits(reason != v1::LEAVE_FAILED);
  return SayLeave(request);
}

absl::Status CoordinatorSession::SayLeave(const v1::LeaveRequest& request) {
  RetryLimits limits = Within(kLeaveWithin, "the limit");
  Backoff pause(kSealedPauseMin, kSealedPauseMax);
  bool answered = false;
  while (true) {
    v1::LeaveReply reply;
    const absl::Status said = calls_.Call("leaving", limits, [&](grpc::ClientContext& context) {
      return calls_.stub().Leave(&context, request, &reply);
    });
    if (absl::IsUnavailable(said)) return Unanswered(said, request.reason(), answered);
    RETURN_IF_ERROR(said);
    if (reply.sealed() || !request.waits()) return absl::OkStatus();
    // The coordinator stays until this worker has learnt that the job is sealed. If it does not
    // answer, it may be restarting and may need the worker, so this waits longer for it.
    answered = true;
    limits = Within(life_.start_limit, "limits.start_seconds");
    options_.sleep(pause.Next());
  }
}

absl::Status CoordinatorSession::Unanswered(const absl::Status& status, v1::LeaveReason reason,
                                            bool answered_before) {
  if (reason == v1::LEAVE_FINISHED && !answered_before) {
    spdlog::warn("{}", std::string(status.message()));
    return absl::OkStatus();
  }
  return absl::UnavailableError(status.message());
}

}  // namespace leeway
