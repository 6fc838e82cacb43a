#include "client/session/coordinator_session.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/algorithm/container.h"
#include "client/calls/client_options.h"
#include "common/backoff.h"
#include "common/protocol.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"

namespace leeway {
namespace {

// Long enough for a large model's schema, short enough to report soon that nobody answers.
constexpr Duration kRegisterAttempt = std::chrono::seconds(5);
constexpr Duration kAtOnce = std::chrono::milliseconds(500);
// A heartbeat that takes longer counts as lost. The next one says the same.
constexpr Duration kHeartbeatAttempt = std::chrono::seconds(5);
// A worker tries at least this long to say or ask something. It waits as long for a coordinator
// that is being restarted.
constexpr Duration kPatienceMin = std::chrono::seconds(60);
// How long a leaving worker waits for the first answer. The coordinator may be gone for good.
constexpr Duration kLeaveWithin = std::chrono::seconds(10);
// The pause between two questions whether the job is sealed. It is short compared with the last
// checkpoint, and makes few questions for ten thousand workers.
constexpr Duration kSealedPauseMin = std::chrono::milliseconds(20);
constexpr Duration kSealedPauseMax = std::chrono::seconds(1);

RetryLimits Within(Duration total, const char* name) {
  RetryLimits limits;
  limits.total = total;
  limits.total_name = name;
  return limits;
}

// A missing answer may pass: a new life of the worker may find the coordinator.
absl::Status MayPass(const absl::Status& error) {
  return absl::IsDeadlineExceeded(error) ? absl::UnavailableError(error.message()) : error;
}

std::chrono::system_clock::time_point After(Duration delay) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(delay);
}

}  // namespace

bool SameLife(const v1::RegisterWorkerReply& a, const v1::RegisterWorkerReply& b) {
  return a.incarnation() == b.incarnation() && a.generation() == b.generation();
}

CoordinatorSession::CoordinatorSession(std::shared_ptr<grpc::Channel> channel, Options options)
    : options_(std::move(options)), stub_(v1::Coordinator::NewStub(std::move(channel))) {}

CoordinatorSession::~CoordinatorSession() { EndHeartbeats(); }

absl::Status CoordinatorSession::Call(
    const std::string& what, const RetryLimits& limits,
    const std::function<grpc::Status(grpc::ClientContext&)>& attempt, CallBreaker* breaker,
    Duration attempt_max) {
  uint64_t number;
  {
    MutexLock lock(mutex_);
    number = ++calls_;
  }
  RetryCore core(limits, RandomStream(options_.nonce, RandomPurpose::kRetry, {number}));
  const Time began = options_.now();
  std::string logged;
  while (true) {
    const Time now = options_.now();
    grpc::ClientContext context;
    context.set_deadline(After(std::clamp<Duration>(limits.total - (now - began),
                                                    std::chrono::milliseconds(1), attempt_max)));
    if (breaker != nullptr && !breaker->Begin(&context)) return absl::CancelledError(what);
    const grpc::Status answer = attempt(context);
    const absl::Status status = ResultOf(answer, context);
    if (breaker != nullptr) breaker->End();
    if (status.ok()) return status;
    const Time failed = options_.now();
    const RetryDecision decision = core.OnFailure(status, failed - now, failed - began);
    if (!decision.error.ok()) {
      return Annotate(MayPass(decision.error),
                      absl::StrCat(what, " (coordinator ", options_.address, ")"));
    }
    if (core.told() != logged) {
      spdlog::info("{}: {}", what, core.told());
      logged = core.told();
    }
    if (decision.delay <= Duration::zero()) continue;
    if (breaker != nullptr) {
      breaker->Pause(decision.delay);
    } else {
      options_.sleep(decision.delay);
    }
  }
}

absl::Status CoordinatorSession::Move(
    const std::string& what, const std::function<grpc::Status(grpc::ClientContext&)>& attempt) {
  RetryLimits limits = Patient();
  if (exchange_limit_ > limits.total) limits = Within(exchange_limit_, "limits.exchange_seconds");
  // The state may be large and the link slow. The connection says whether the other side is there.
  return Call(what, limits, attempt, nullptr, limits.total);
}

RetryLimits CoordinatorSession::Patient() const {
  const bool named = patience_ == start_limit_;
  return Within(patience_, named ? "limits.start_seconds" : "the shortest limit");
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
    // Between calls no thread drives the connection, so a call has to wait for it. Otherwise a
    // coordinator that comes up during a pause would be noticed only when the attempt to connect
    // times out.
    context.set_wait_for_ready(true);
    context.set_deadline(std::min(context.deadline(), After(kRegisterAttempt)));
    grpc::Status status = stub_->RegisterWorker(&context, request, &reply);
    answered |= status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
    // A coordinator that has answered has also said whom it waits for.
    if (answered) return status;
    // A call that does not wait for the connection returns the reason why it fails.
    grpc::ClientContext at_once;
    at_once.set_deadline(After(kAtOnce));
    const grpc::Status why = stub_->RegisterWorker(&at_once, request, &reply);
    answered = why.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED &&
               why.error_code() != grpc::StatusCode::UNAVAILABLE;
    if (answered) return why;
    const bool known = why.error_code() == grpc::StatusCode::UNAVAILABLE;
    return grpc::Status(
        grpc::StatusCode::UNAVAILABLE,
        absl::StrCat("no answer yet; is server 0 running, and is this its address?",
                     known ? absl::StrCat(" (", InPlainWords(why.error_message()), ")") : ""));
  };
  RETURN_IF_ERROR(Call(what, limits, attempt, options_.registrations));
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
  job_ = reply.job_id();
  rank_ = reply.rank();
  incarnation_ = reply.incarnation();
  generation_ = reply.generation();
  start_limit_ = limit;
  patience_ = std::max(limit, kPatienceMin);
  exchange_limit_ = FromSeconds(reply.job().limits().exchange_seconds());
  goes_on_without_lost_ = reply.job().consistency().mode() != v1::CONSISTENCY_MODE_SYNC ||
                          reply.job().workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE;
  MutexLock lock(mutex_);
  epoch_ = reply.epoch();
  return reply;
}

void CoordinatorSession::StartHeartbeats(Duration every, Listener listener) {
  every_ = every;
  listener_ = std::move(listener);
  heartbeats_ = std::thread([this] { HeartbeatLoop(); });
}

void CoordinatorSession::EndHeartbeats() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  if (heartbeats_.joinable()) heartbeats_.join();
}

void CoordinatorSession::HeartbeatLoop() {
  Duration soon = kBeatsApart;
  uint64_t known = 0;
  while (true) {
    const absl::Status status = Beat();
    if (!status.ok() && !IsRetryable(status.code())) {
      if (listener_.on_refused) listener_.on_refused(Annotate(status, "heartbeat"));
      return;
    }
    const Time beat = std::chrono::steady_clock::now();
    MutexLock lock(mutex_);
    // If a server is gone for long, its thousands of workers ask less and less often.
    if (std::exchange(known, epoch_) != epoch_) soon = kBeatsApart;
    while (!ending_ && changed_.WaitUntil(mutex_, beat + (beat_soon_ ? soon : every_))) {
    }
    if (ending_) return;
    soon = std::exchange(beat_soon_, false) ? std::min(2 * soon, every_) : kBeatsApart;
  }
}

void CoordinatorSession::BeatSoon() {
  MutexLock lock(mutex_);
  if (std::exchange(beat_soon_, true)) return;
  changed_.NotifyAll();
}

v1::HeartbeatRequest CoordinatorSession::Greeting() const {
  v1::HeartbeatRequest request;
  request.set_job(job_);
  request.set_rank(rank_);
  request.set_incarnation(incarnation_);
  request.set_generation(generation_);
  request.set_clock(clock_);
  request.set_epoch(epoch_);
  return request;
}

v1::HeartbeatRequest CoordinatorSession::MakeHeartbeat(
    std::vector<v1::EvaluationMetrics>& evaluations) {
  v1::HeartbeatRequest request = Greeting();
  for (v1::StepMetrics& record : steps_.Take()) *request.add_steps() = std::move(record);
  evaluations.swap(evaluations_);
  for (const v1::EvaluationMetrics& record : evaluations) *request.add_evaluations() = record;
  return request;
}

absl::Status CoordinatorSession::Beat() {
  std::vector<v1::EvaluationMetrics> evaluations;
  v1::HeartbeatRequest request;
  {
    MutexLock lock(mutex_);
    request = MakeHeartbeat(evaluations);
  }
  if (listener_.waiting) request.set_waiting(listener_.waiting());
  LookAtWait(request.waiting());
  grpc::ClientContext context;
  context.set_deadline(After(kHeartbeatAttempt));
  v1::HeartbeatReply reply;
  const grpc::Status answer = stub_->Heartbeat(&context, request, &reply);
  const absl::Status status = ResultOf(answer, context);
  if (status.ok()) {
    TakeHeartbeatReply(reply);
    return status;
  }
  // Without an answer nothing is known to have arrived, so the records go out again.
  MutexLock lock(mutex_);
  steps_.PutBack({request.steps().begin(), request.steps().end()});
  evaluations_.insert(evaluations_.begin(), evaluations.begin(), evaluations.end());
  return status;
}

void CoordinatorSession::TakeHeartbeatReply(const v1::HeartbeatReply& reply) {
  bool changed = false;
  bool moved = false;
  {
    MutexLock lock(mutex_);
    moved = reply.epoch() > epoch_ && reply.servers_size() > 0;
    if (moved) epoch_ = reply.epoch();
    stop_requested_ |= reply.stop_requested();
    changed = reply.has_stop_at() && stop_at_ != reply.stop_at();
    if (changed) stop_at_ = reply.stop_at();
  }
  if (moved && listener_.on_servers) {
    listener_.on_servers(EndpointsOf(reply.servers(), reply.local_servers()));
  }
  if (reply.has_group() && listener_.on_group) listener_.on_group(reply.group());
  if (changed && listener_.on_stop_at) listener_.on_stop_at(reply.stop_at());
}

void CoordinatorSession::LookAtWait(const std::string& what) {
  const Time now = options_.now();
  if (what.empty()) waits_since_.reset();
  if (!waits_since_) {
    waits_since_ = asked_ = now;
    return;
  }
  if (now - asked_ < exchange_limit_ / 4) return;
  const bool beyond = now - *waits_since_ >= exchange_limit_;
  const bool said = asked_ - *waits_since_ >= exchange_limit_;
  asked_ = now;
  if (!HearsOthers()) return;
  {
    MutexLock lock(mutex_);
    others_heard_ = now;
  }
  if (beyond && !said) {
    spdlog::info(
        "{}, for longer than limits.exchange_seconds ({} s); the coordinator hears them, "
        "so the wait goes on",
        what, Seconds(exchange_limit_));
  }
}

bool CoordinatorSession::HearsOthers() {
  grpc::ClientContext context;
  context.set_deadline(After(kHeartbeatAttempt));
  v1::JobStatus status;
  if (!stub_->GetJobStatus(&context, v1::GetJobStatusRequest(), &status).ok()) return false;
  const auto is_heard = [](const auto& process) {
    return process.state() != "lost" && process.state() != "waiting";
  };
  return absl::c_all_of(status.servers(), is_heard) &&
         (goes_on_without_lost_ || absl::c_all_of(status.workers(), is_heard));
}

bool CoordinatorSession::others_are_heard() const {
  const Time now = options_.now();
  MutexLock lock(mutex_);
  return others_heard_ && now - *others_heard_ < exchange_limit_ / 2;
}

void CoordinatorSession::SetClock(uint64_t clock) {
  MutexLock lock(mutex_);
  clock_ = clock;
}

void CoordinatorSession::Report(const v1::StepMetrics& metrics) {
  const Time now = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  steps_.Add(metrics, now);
}

void CoordinatorSession::Report(const v1::EvaluationMetrics& metrics) {
  MutexLock lock(mutex_);
  evaluations_.push_back(metrics);
}

bool CoordinatorSession::stop_requested() const {
  MutexLock lock(mutex_);
  return stop_requested_;
}

absl::StatusOr<uint64_t> CoordinatorSession::StopAt(uint64_t clock) {
  v1::StopAtRequest request;
  request.set_job(job_);
  request.set_rank(rank_);
  request.set_incarnation(incarnation_);
  request.set_generation(generation_);
  request.set_clock(clock);
  v1::StopAtReply reply;
  RETURN_IF_ERROR(Call("asking where to stop", Patient(), [&](grpc::ClientContext& context) {
    return stub_->StopAt(&context, request, &reply);
  }));
  return reply.stop_at();
}

absl::StatusOr<v1::LeaseDataReply> CoordinatorSession::LeaseData(v1::LeaseDataRequest request) {
  request.set_job(job_);
  request.set_rank(rank_);
  request.set_incarnation(incarnation_);
  request.set_generation(generation_);
  v1::LeaseDataReply reply;
  RETURN_IF_ERROR(Call(
      "asking for batches", Patient(),
      [&](grpc::ClientContext& context) { return stub_->LeaseData(&context, request, &reply); },
      &leases_));
  return reply;
}

absl::Status CoordinatorSession::Leave(v1::LeaveReason reason, uint64_t clock,
                                       const std::string& message) {
  EndHeartbeats();
  SetClock(clock);
  // Sends the last metrics. The worker leaves even if that fails.
  Beat().IgnoreError();
  v1::LeaveRequest request;
  request.set_job(job_);
  request.set_rank(rank_);
  request.set_incarnation(incarnation_);
  request.set_generation(generation_);
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
    const absl::Status said = Call("leaving", limits, [&](grpc::ClientContext& context) {
      return stub_->Leave(&context, request, &reply);
    });
    if (absl::IsUnavailable(said)) return Unanswered(said, request.reason(), answered);
    RETURN_IF_ERROR(said);
    if (reply.sealed() || !request.waits()) return absl::OkStatus();
    // The coordinator stays until this worker has heard of the end. Or it comes back and may need
    // the worker.
    answered = true;
    limits = Within(start_limit_, "limits.start_seconds");
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
