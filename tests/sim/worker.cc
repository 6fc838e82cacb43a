#include "tests/sim/worker.h"

#include <algorithm>

#include "tests/sim/values.h"

namespace leeway::sim {
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
  needs_initialize_ = knows_clock_ = finished_ = stop_requested_ = asked_ = false;
  given_up_.reset();
  read_ = reading_ = {};
  stop_at_.reset();
  saved_.reset();
  OpenOne(context, Phase::kRegister, Kind::kRegister);
}

// Like Trainer::Rejoin. An exchange that cannot be abandoned is replaced by a new one, as after
// going back.
void SimWorker::Rejoin(Context& context) {
  ++context.counts.rejoined;
  if (context.shape.elastic) return StartAgain(context);
  for (Call& call : calls_) call.open = call.in_flight = false;
  if (phase_ == Phase::kExchange || phase_ == Phase::kPush) given_up_ = clock_;
  counted_ = 0;
  clock_ = UINT64_MAX;
  OpenAll(context, Phase::kAttach, Kind::kAttach);
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
      counted_ = std::max(counted_, reply.value);
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

// All calls of the phase are answered; begins the next phase.
void SimWorker::Next(Context& context) {
  switch (phase_) {
    case Phase::kRegister:
      return Registered(context);
    case Phase::kAttach:
      CheckCounted(context);
      if (needs_initialize_ && (rank_ == 0 || context.shape.continues)) {
        needs_initialize_ = false;
        return OpenAll(context, Phase::kInitialize, Kind::kInitialize);
      }
      [[fallthrough]];
    case Phase::kInitialize:
      knows_clock_ = context.bug != Bug::kNoLastState;
      if (stop_at_ && clock_ >= *stop_at_) return BreakOff(context);
      return OpenAll(context, Phase::kRead, Kind::kPull);
    case Phase::kPush:
      ++clock_;
      return OpenAll(context, Phase::kPull, Kind::kPull);
    case Phase::kExchange:
      ++clock_;
      return Completed(context);
    case Phase::kPull:
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
  // An earlier life has done all the work: this one stands by until the job is sealed.
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
  knows_clock_ = true;
  finished_ = Over(context);
  const uint32_t every = context.shape.cut_every;
  if (finished_) {
    if (SavesState(context)) return OpenOne(context, Phase::kState, Kind::kState);
    if (context.faults.split > 0) return OpenAll(context, Phase::kLatest, Kind::kLatest);
    return Leave(context);
  }
  const bool exchanged = phase_ == Phase::kExchange || phase_ == Phase::kPull;
  if (exchanged && every > 0 && clock_ % every == 0 && SavesState(context)) {
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
  const bool split = context.faults.split > 0 && clock_ % context.faults.split == 0;
  OpenAll(context, split ? Phase::kPush : Phase::kExchange, split ? Kind::kPush : Kind::kPushPull);
}

void SimWorker::TakeStop(Context& context, const Message& reply) {
  if (!reply.has_stop || stop_at_) return;
  stop_at_ = reply.stop_at;
  stop_requested_ = true;
  const bool between = phase_ == Phase::kRegister || phase_ >= Phase::kStopAt;
  // What the stop gate breaks off. The gate knows clock 0 until the worker knows where it
  // continues.
  const bool first = phase_ <= Phase::kInitialize;
  if (between || (first ? 0 : clock_) < *stop_at_) return;
  // The worker has not completed a clock yet.
  if (first) clock_ = 0;
  BreakOff(context);
}

// The exchange under way would never end: the others stop before it.
void SimWorker::BreakOff(Context& context) {
  for (Call& call : calls_) call.open = call.in_flight = false;
  ++context.counts.stopped;
  if (knows_clock_ && SavesState(context)) return OpenOne(context, Phase::kState, Kind::kState);
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

}  // namespace leeway::sim
