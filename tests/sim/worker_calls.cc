// A worker's calls, each with its attempts, made as the client makes them around RetryCore.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/values.h"
#include "tests/sim/worker.h"

namespace leeway::sim {
namespace {

const RetryLimits& Limits() {
  static const RetryLimits limits = {.total = std::chrono::seconds(1000),
                                     .total_name = "limits.exchange_seconds",
                                     .backoff_min = std::chrono::microseconds(500),
                                     .backoff_max = std::chrono::microseconds(4000),
                                     .held = std::chrono::microseconds(2000)};
  return limits;
}

}  // namespace

void SimWorker::Open(Context& context, size_t index, Kind kind, NodeId to, uint32_t block,
                     uint64_t clock) {
  Call& call = calls_[index];
  call.kind = kind;
  call.to = to;
  call.block = static_cast<uint8_t>(block);
  call.open = true;
  call.clock = clock;
  call.first = context.LocalNow(static_cast<NodeId>(rank_));
  call.retry.reset();
  if (kind == Kind::kPush || kind == Kind::kPushPull) {
    uint64_t read = 0;
    const bool exact = context.shape.sync() && !context.shape.elastic;
    for (uint32_t b = 0; exact && b < context.shape.blocks; ++b) {
      read = Mix(read, read_[b].values);
    }
    call.value = ContributionValue(rank_, clock, block, read);
  }
  Attempt(context, index);
}

void SimWorker::Attempt(Context& context, size_t index) {
  Call& call = calls_[index];
  call.began = context.LocalNow(static_cast<NodeId>(rank_));
  call.in_flight = true;
  call.attempt = ++attempts_;
  Message request;
  request.kind = call.kind;
  request.from = static_cast<NodeId>(rank_);
  request.to = call.to == kCoordinator ? kCoordinator : owners_[call.to - kServer0];
  request.rank = static_cast<uint8_t>(rank_);
  request.block = call.block;
  request.call = static_cast<uint8_t>(index);
  request.attempt = call.attempt;
  request.life = life_;
  request.incarnation = incarnation_;
  request.generation = generation_;
  request.clock = call.clock;
  request.value = call.value;
  request.flag = call.kind == Kind::kLeave && finished_;
  context.Send(request);
}

void SimWorker::Retry(Context& context, Call& call, absl::StatusCode code) {
  if (!call.retry) {
    call.retry.emplace(
        Limits(), RandomStream(context.draws.NextU32(), RandomPurpose::kRetry, {rank_, life_}));
  }
  const Micros now = context.LocalNow(static_cast<NodeId>(rank_));
  const RetryDecision decision = call.retry->OnFailure(absl::Status(code, "put off"),
                                                       std::chrono::microseconds(now - call.began),
                                                       std::chrono::microseconds(now - call.first));
  if (!decision.error.ok()) {
    context.Violate("what may be tried again is tried again",
                    [&] { return decision.error.ToString(); });
  }
  call.in_flight = false;
  call.again = now + std::chrono::duration_cast<std::chrono::microseconds>(decision.delay).count();
}

// An error status either causes another attempt or ends this life.
void SimWorker::Fail(Context& context, size_t index, absl::StatusCode code) {
  Call& call = calls_[index];
  if (IsRetryable(code)) {
    Retry(context, call, code);
    if (call.again <= context.LocalNow(static_cast<NodeId>(rank_))) Attempt(context, index);
    return;
  }
  if (code == absl::StatusCode::kAlreadyExists && call.to != kCoordinator) return Rejoin(context);
  // This rank has no work left.
  const bool failed = code == absl::StatusCode::kFailedPrecondition && call.kind == Kind::kRegister;
  const bool over = code == absl::StatusCode::kAlreadyExists;
  if (over || failed) return Finish(End::kLeft);
  const bool went_back = generation_ < context.generation;
  if (code == absl::StatusCode::kFailedPrecondition && went_back && call.kind != Kind::kRegister) {
    return StartAgain(context);
  }
  Finish(End::kDied);
  CheckRefused(context, call, code);
}

void SimWorker::CheckRefused(Context& context, const Call& call, absl::StatusCode code) {
  // A newer life exists, or will soon.
  const bool replaced = incarnation_ == 0 || context.newest[rank_] > incarnation_;
  if (code == absl::StatusCode::kAborted && replaced) return;
  const bool old = replaced || call.to == kCoordinator;
  if (code == absl::StatusCode::kFailedPrecondition && old) return;
  context.Violate("the newest life of a rank is never refused for good", [&] {
    return absl::StrCat("worker ", rank_, " incarnation ", incarnation_, ", ", KindName(call.kind),
                        " block ", call.block, " clock ", call.clock, ": ",
                        absl::StatusCodeToString(code));
  });
}

void SimWorker::OpenAll(Context& context, Phase phase, Kind kind) {
  phase_ = phase;
  const bool servers = kind == Kind::kAttach;
  const uint32_t count = servers ? context.shape.servers : context.shape.blocks;
  for (uint32_t i = 0; i < count; ++i) {
    const auto to = static_cast<NodeId>(kServer0 + i % context.shape.servers);
    Open(context, i, kind, to, i, clock_);
  }
}

void SimWorker::OpenOne(Context& context, Phase phase, Kind kind) {
  phase_ = phase;
  Open(context, 0, kind, kCoordinator, 0, clock_);
}

bool SimWorker::IsOpen() const {
  return std::any_of(calls_.begin(), calls_.end(), [](const Call& call) { return call.open; });
}

void SimWorker::OnReply(Context& context, const Message& reply) {
  Call& call = calls_[reply.call];
  if (!Expects(reply)) return;
  if (reply.code == absl::StatusCode::kUnavailable && reply.flag) {
    call.began = context.LocalNow(static_cast<NodeId>(rank_));
    return;
  }
  // The contribution was not finite: the worker computes it and sends it again.
  const bool pushes = call.kind == Kind::kPushPull || call.kind == Kind::kPush;
  if (pushes && reply.code == absl::StatusCode::kInvalidArgument) {
    return Attempt(context, reply.call);
  }
  const bool dismissed = reply.code == absl::StatusCode::kAlreadyExists &&
                         call.to == kCoordinator && context.shape.whole && !reply.flag;
  if (dismissed) {
    context.Violate("nobody is sent away before the job's end is on record",
                    [&] { return Describe(reply); });
  }
  if (reply.code != absl::StatusCode::kOk) return Fail(context, reply.call, reply.code);
  // No clock is computed again only once the job is sealed: until then the worker may be needed.
  if (call.kind == Kind::kLeave && context.shape.whole && !reply.flag) {
    call.in_flight = false;
    call.again = context.LocalNow(static_cast<NodeId>(rank_)) + kWorkerTickEvery;
    return;
  }
  call.open = call.in_flight = false;
  Take(context, call, reply);
  if (end_ == End::kNone && !IsOpen()) Next(context);
}

void SimWorker::OnTick(Context& context) {
  if (end_ != End::kNone) return;
  const Micros now = context.LocalNow(static_cast<NodeId>(rank_));
  for (size_t i = 0; i < kCallsMax && end_ == End::kNone; ++i) {
    Call& call = calls_[i];
    if (!call.open) continue;
    if (call.in_flight && now - call.began >= kAttemptLimit) {
      Fail(context, i, absl::StatusCode::kDeadlineExceeded);
    } else if (!call.in_flight && now >= call.again) {
      Attempt(context, i);
    }
  }
  Message timer;
  timer.kind = Kind::kWorkerTick;
  timer.rank = static_cast<uint8_t>(rank_);
  timer.life = life_;
  context.After(static_cast<NodeId>(rank_), kWorkerTickEvery, timer);
  if (!registered() || ++ticks_ % 2 == 0) return;
  Message beat = timer;
  beat.kind = Kind::kHeartbeat;
  beat.from = static_cast<NodeId>(rank_);
  beat.to = kCoordinator;
  beat.incarnation = incarnation_;
  beat.generation = generation_;
  // The clock is known once all servers have said where the worker continues.
  beat.clock = phase_ <= Phase::kInitialize ? 0 : clock_;
  beat.version.number = epoch_;
  context.Send(beat);
}

}  // namespace leeway::sim
