#include "tests/sim/worker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/server.h"

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

// ---- calls

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

// A status that is no answer is either worth trying again, or the end of this life.
void SimWorker::Fail(Context& context, size_t index, absl::StatusCode code) {
  Call& call = calls_[index];
  if (IsRetryable(code)) {
    Retry(context, call, code);
    if (call.again <= context.LocalNow(static_cast<NodeId>(rank_))) Attempt(context, index);
    return;
  }
  // Nothing is left to do for this rank.
  const bool failed = code == absl::StatusCode::kFailedPrecondition && call.kind == Kind::kRegister;
  const bool over = code == absl::StatusCode::kAlreadyExists;
  if (over || failed) return Finish(End::kLeft);
  const bool went_back = generation_ < context.generation;
  if (code == absl::StatusCode::kFailedPrecondition && went_back && call.kind != Kind::kRegister) {
    return StartAgain(context);
  }
  Finish(End::kDied);
  // A newer life exists, or is about to.
  // What an earlier life handed in was not finite after all: go back to it.
  const bool rejected =
      context.faults.reject > 0 && call.kind == Kind::kPull &&
      (code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kFailedPrecondition);
  if (rejected) return;
  // Found: it was told that a contribution had been accepted which no replica has. Its next life
  // is told otherwise.
  const bool taken_over = context.shape.replicas > 1 && !context.shape.found &&
                          call.kind == Kind::kPull && code == absl::StatusCode::kFailedPrecondition;
  if (taken_over) return;
  const bool replaced = incarnation_ == 0 || context.newest[rank_] > incarnation_;
  if (code == absl::StatusCode::kAborted && replaced) return;
  if (code == absl::StatusCode::kFailedPrecondition && (replaced || call.to == kCoordinator))
    return;
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
  // A contribution that made no sense: it is computed and handed in again.
  const bool pushes = call.kind == Kind::kPushPull;
  if (pushes && reply.code == absl::StatusCode::kInvalidArgument) {
    return Attempt(context, reply.call);
  }
  // Found: told that the job is over before that is on record.
  if (reply.code == absl::StatusCode::kAlreadyExists && context.shape.whole && !reply.flag &&
      !context.shape.found) {
    return Finish(End::kDied);
  }
  if (reply.code != absl::StatusCode::kOk) return Fail(context, reply.call, reply.code);
  // Nothing will be done again only when the job is sealed: until then it may be needed.
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
  // Known once all servers have said where it goes on.
  beat.clock = phase_ <= Phase::kInitialize ? 0 : clock_;
  beat.version.number = epoch_;
  context.Send(beat);
}

void SimWorker::TakeOwners(const Message& reply) {
  if (reply.version.number == 0 || reply.version.number < epoch_) return;
  epoch_ = reply.version.number;
  for (uint32_t i = 0; i < kServersMax; ++i) {
    owners_[i] = static_cast<NodeId>(kServer0 + reply.version.clocks[i]);
  }
}

// ---- the walk

void SimWorker::Start(Context& context) {
  OpenOne(context, Phase::kRegister, Kind::kRegister);
  Message timer;
  timer.kind = Kind::kWorkerTick;
  timer.rank = static_cast<uint8_t>(rank_);
  timer.life = life_;
  context.After(static_cast<NodeId>(rank_), kWorkerTickEvery, timer);
}

void SimWorker::StartAgain(Context& context) {
  for (Call& call : calls_) call.open = call.in_flight = false;
  clock_ = 0;
  needs_initialize_ = attached_ = began_ = finished_ = stop_requested_ = asked_ = false;
  read_ = reading_ = {};
  stop_at_.reset();
  saved_.reset();
  OpenOne(context, Phase::kRegister, Kind::kRegister);
}

void SimWorker::StartTraining(Context& context, uint64_t incarnation) {
  incarnation_ = incarnation;
  for (uint32_t b = 0; b < context.shape.blocks; ++b) read_[b].values = FirstValues(b);
  BeginClock(context);
}

void SimWorker::Take(Context& context, const Call& call, const Message& reply) {
  switch (call.kind) {
    case Kind::kRegister:
      incarnation_ = reply.incarnation;
      generation_ = reply.generation;
      epoch_ = 0;
      TakeOwners(reply);
      left_at_.reset();
      if (reply.flag) left_at_ = reply.clock;
      TakeStop(context, reply);
      break;
    case Kind::kAttach:
      clock_ = std::min(clock_, reply.clock);
      needs_initialize_ |= reply.flag;
      break;
    case Kind::kPull:
    case Kind::kPushPull:
      CheckSeen(context, call, reply);
      reading_[call.block] = reply.version;
      break;
    case Kind::kStopAt:
      TakeStop(context, reply);
      break;
    default:
      break;
  }
}

// All calls of the phase are answered.
void SimWorker::Next(Context& context) {
  switch (phase_) {
    case Phase::kRegister:
      return Registered(context);
    case Phase::kAttach:
      if (needs_initialize_ && rank_ == 0) {
        return OpenAll(context, Phase::kInitialize, Kind::kInitialize);
      }
      [[fallthrough]];
    case Phase::kInitialize:
      // Found: the trainer hands in no state there.
      attached_ = !context.shape.found;
      if (stop_at_ && clock_ >= *stop_at_) return BreakOff(context);
      return OpenAll(context, Phase::kRead, Kind::kPull);
    case Phase::kPush:
      ++clock_;
      return OpenAll(context, Phase::kRead, Kind::kPull);
    case Phase::kExchange:
      ++clock_;
      return Completed(context);
    case Phase::kRead:
      return Completed(context);
    case Phase::kStopAt:
      return BeginClock(context);
    case Phase::kState:
      saved_ = clock_;
      return finished_ || stop_at_.value_or(clock_ + 1) <= clock_ ? Leave(context)
                                                                  : BeginClock(context);
    case Phase::kLatest:
      return Leave(context);
    case Phase::kLeave:
      return Finish(leaving_ && !finished_ && !stop_requested_ ? End::kWentEarly : End::kLeft);
  }
}

void SimWorker::Registered(Context& context) {
  // A life before this one has done all there was to do: stands by until the job is sealed.
  if (left_at_) {
    clock_ = *left_at_;
    return Leave(context);
  }
  clock_ = UINT64_MAX;
  OpenAll(context, Phase::kAttach, Kind::kAttach);
}

bool SimWorker::Over(const Context& context) const {
  if (context.shape.mode != Consistency::kAsync) return clock_ >= context.shape.clocks;
  uint64_t version = UINT64_MAX;
  for (uint32_t b = 0; b < context.shape.blocks; ++b) version = std::min(version, read_[b].number);
  return version >= uint64_t{context.shape.workers} * context.shape.clocks;
}

bool SimWorker::SavesState(const Context& context) const {
  return context.shape.whole && context.shape.elastic && saved_ != clock_;
}

void SimWorker::Completed(Context& context) {
  read_ = reading_;
  attached_ = true;
  began_ = false;
  finished_ = Over(context);
  const uint32_t every = context.shape.cut_every;
  if (finished_) {
    if (SavesState(context)) return OpenOne(context, Phase::kState, Kind::kState);
    if (context.faults.split) return OpenAll(context, Phase::kLatest, Kind::kLatest);
    return Leave(context);
  }
  if (phase_ == Phase::kExchange && every > 0 && clock_ % every == 0 && SavesState(context)) {
    return OpenOne(context, Phase::kState, Kind::kState);
  }
  BeginClock(context);
}

void SimWorker::BeginClock(Context& context) {
  if (leaving_ && !stop_requested_) return Leave(context);
  if (stop_requested_ && !asked_ && !stop_at_) {
    asked_ = true;
    return OpenOne(context, Phase::kStopAt, Kind::kStopAt);
  }
  if (stop_at_ && clock_ >= *stop_at_) return BreakOff(context);
  began_ = true;
  const bool split = context.faults.split;
  OpenAll(context, split ? Phase::kPush : Phase::kExchange, split ? Kind::kPush : Kind::kPushPull);
}

void SimWorker::TakeStop(Context& context, const Message& reply) {
  if (!reply.has_stop || stop_at_) return;
  stop_at_ = reply.stop_at;
  stop_requested_ = true;
  const bool between = phase_ == Phase::kRegister || phase_ >= Phase::kStopAt;
  // What the stop gate breaks off; it knows clock 0 until the worker knows where it goes on.
  const bool first = phase_ <= Phase::kInitialize;
  if (between || (first ? 0 : clock_) < *stop_at_) return;
  // Nothing is completed yet.
  if (first) clock_ = 0;
  BreakOff(context);
}

// What is under way never ends: the others stop before it.
void SimWorker::BreakOff(Context& context) {
  for (Call& call : calls_) call.open = call.in_flight = false;
  ++context.counts.stopped;
  if (attached_ && SavesState(context)) return OpenOne(context, Phase::kState, Kind::kState);
  Leave(context);
}

void SimWorker::Leave(Context& context) { OpenOne(context, Phase::kLeave, Kind::kLeave); }

void SimWorker::OnHeartbeatReply(Context& context, const Message& reply) {
  if (end_ != End::kNone || phase_ == Phase::kLeave || phase_ == Phase::kRegister) return;
  if (reply.incarnation != incarnation_ || reply.generation != generation_) return;
  if (reply.code == absl::StatusCode::kAborted) return Finish(End::kDied);
  const bool went_back = generation_ < context.generation;
  if (reply.code == absl::StatusCode::kFailedPrecondition && went_back) return StartAgain(context);
  if (reply.code != absl::StatusCode::kOk) return;
  TakeOwners(reply);
  stop_requested_ |= reply.flag;
  TakeStop(context, reply);
}

// ---- what it may see

bool SimWorker::IsAllowed(const Context& context, const Call& call, const Message& reply) const {
  const Version& shown = reply.version;
  const bool pushed = call.kind == Kind::kPushPull;
  const uint64_t starts = call.clock + (pushed ? 1 : 0);
  const bool before = pushed && context.shape.elastic;
  if (context.shape.sync()) {
    const uint64_t want = starts - (before ? 1 : 0);
    for (uint32_t r = 0; r < context.shape.workers; ++r) {
      if (shown.clocks[r] != Below(want)) return false;
    }
    return shown.number == want && shown.values == ExpectedValues(context.shape, call.block, want);
  }
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    if ((read_[call.block].clocks[r] & ~shown.clocks[r]) != 0) return false;
  }
  const uint64_t own = shown.clocks[rank_];
  if (before && !reply.duplicate) return own == Below(call.clock);
  return (Below(starts) & ~own) == 0 && shown.number >= read_[call.block].number;
}

void SimWorker::CheckSeen(Context& context, const Call& call, const Message& reply) {
  if (IsAllowed(context, call, reply)) return;
  context.Violate("a worker sees what its clock promises, and never less than before", [&] {
    return absl::StrCat("worker ", rank_, " incarnation ", incarnation_, ", ", KindName(call.kind),
                        " clock ", call.clock, ": ", Describe(reply));
  });
}

uint64_t SimWorker::Hash() const {
  uint64_t hash = Mix(Mix(static_cast<uint64_t>(phase_), static_cast<uint64_t>(end_)),
                      Mix(incarnation_, clock_));
  hash = Mix(hash, life_);
  for (const Call& call : calls_) {
    if (!call.open) continue;
    hash = Mix(hash, Mix(Mix(static_cast<uint64_t>(call.kind), call.block),
                         Mix(call.clock, call.attempt)));
  }
  for (uint32_t b = 0; b < kBlocksMax; ++b) {
    hash = Mix(hash, Mix(read_[b].values, reading_[b].values));
  }
  return hash;
}

std::string SimWorker::Where() const {
  static constexpr const char* kPhases[] = {"register", "attach", "initialize", "read",  "push",
                                            "exchange", "latest", "stop at",    "state", "leave"};
  return absl::StrCat("worker ", rank_, " life ", life_, " incarnation ", incarnation_, " in ",
                      kPhases[static_cast<int>(phase_)], ", clock ", clock_);
}

}  // namespace leeway::sim
