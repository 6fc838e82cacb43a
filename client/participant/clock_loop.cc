#include "client/participant/clock_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/first_step.h"
#include "common/status.h"

namespace leeway {
namespace {

// How often a worker that waits for a batch checks whether it must stop.
constexpr Duration kStopCheckEvery = std::chrono::milliseconds(200);

}  // namespace

ClockLoop::ClockLoop(Participant& participant, bool idle)
    : participant_(participant),
      idle_(idle),
      state_(participant.registration(), participant.session()),
      reports_(participant.session(), participant.client(), participant.peers()) {}

absl::Status ClockLoop::Attach(ClockExchange& exchange, const InitialWeights& initial) {
  exchange_ = &exchange;
  participant_.StartHeartbeats();
  const absl::Status status = AttachAndBegin(initial);
  return absl::IsCancelled(status) ? BreakOff(status) : status;
}

absl::Status ClockLoop::AttachAndBegin(const InitialWeights& initial) {
  const v1::RegisterWorkerReply& registration = participant_.registration();
  ParameterClient& client = participant_.client();
  RETURN_IF_ERROR(OnBegin(clock_));
  ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, client.Attach());
  // All ranks compute the same first weights, so only rank 0 sends them; the first read of the
  // other ranks waits for that. But if the job goes on without lost workers, any rank may send
  // them, because rank 0 may be lost.
  const bool any = registration.job().workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE;
  if (attachment.needs_initialize && (registration.rank() == 0 || any)) {
    ASSIGN_OR_RETURN(const FloatBuffer weights, initial());
    RETURN_IF_ERROR(client.Initialize(weights.span()));
  }
  RETURN_IF_ERROR(state_.Load(attachment.clock, *exchange_));
  absl::Status begun = BeginAt(attachment);
  // The worker joins at another clock only if it has no loaded state, because that state belongs to
  // its clock. To start afresh it needs a new registration.
  if (absl::IsAlreadyExists(begun) && !state_.has_state()) begun = Join().status();
  RETURN_IF_ERROR(begun);
  participant_.gate().Leave();
  moved_ = true;
  spdlog::info("training from clock {} of {} (steps a clock: {}, an epoch: {})", clock_,
               length().clocks(), length().steps_per_clock(), length().steps_per_epoch());
  return absl::OkStatus();
}

absl::Status ClockLoop::BeginAt(const ParameterClient::Attachment& attachment) {
  clock_ = attachment.clock;
  state_.GoOnAt(clock_);
  if (participant_.leases() != nullptr) participant_.leases()->GoOnAt(clock_);
  reports_.GoOnAt(clock_);
  // Asks the gate, because an earlier life may have gone beyond the clock at which all workers
  // stop.
  RETURN_IF_ERROR(OnBegin(clock_));
  ASSIGN_OR_RETURN(const uint64_t version, exchange_->Begin(clock_));
  reports_.Begin(version);
  state_.Begun();
  return absl::OkStatus();
}

absl::StatusOr<ParameterClient::Attachment> ClockLoop::Join() {
  while (true) {
    ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, participant_.client().Attach());
    const absl::Status begun = BeginAt(attachment);
    if (begun.ok()) return attachment;
    if (!absl::IsAlreadyExists(begun)) return begun;
  }
}

absl::Status ClockLoop::Rejoin(const absl::Status& why) {
  if (!exchange_->Abandon()) {
    failed_ = why;
    return absl::OkStatus();
  }
  StopGate& gate = participant_.gate();
  gate.Leave();
  RETURN_IF_ERROR(OnBegin(clock_));
  ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, Join());
  gate.Leave();
  Settled(attachment.counted, true);
  moved_ = true;
  spdlog::debug("{}; goes on at clock {}", std::string(why.message()), clock_);
  if (!reports_.open()) return absl::OkStatus();
  const bool counts = attachment.counted >= *reports_.open();
  if (!counts) exchange_->Drop(*reports_.open() - 1);
  reports_.BreakOff(Epoch(), counts);
  return absl::OkStatus();
}

absl::StatusOr<bool> ClockLoop::AwaitBackground(Time deadline) {
  const auto done = slow_.Await(deadline);
  if (done.ok() && !*done) return false;
  RETURN_IF_ERROR(failed_);
  if (!done.ok()) RETURN_IF_ERROR(BreakOff(done.status()));
  return true;
}

absl::StatusOr<ClockLoop::Next> ClockLoop::Begin(Time deadline) {
  while (true) {
    ASSIGN_OR_RETURN(const bool ready, AwaitBackground(deadline));
    if (!ready) return Next::kNotYet;
    const auto next = detour_.ok() ? TryBegin(deadline) : Recover(deadline);
    if (!next.ok()) {
      RETURN_IF_ERROR(BreakOff(next.status()));
    } else if (next->has_value()) {
      return **next;
    }
  }
}

absl::Status ClockLoop::BreakOff(const absl::Status& status) {
  absl::Status why = status;
  if (absl::IsCancelled(status)) {
    const absl::Status refused = participant_.gate().refused();
    if (!refused.ok()) why = refused;
  }
  if (!IsMoved(why) && !absl::IsCancelled(why)) return failed_ = why;
  detour_ = why;
  return absl::OkStatus();
}

std::optional<ClockLoop::Next> ClockLoop::Recover(Time deadline) {
  const absl::Status why = std::exchange(detour_, absl::OkStatus());
  if (absl::IsCancelled(why)) {
    // Sets the clock back, so that the program saves its state for the same clock as the other
    // workers.
    clock_ = completed();
    return Next::kStopped;
  }
  finished_ = false;
  if (absl::IsFailedPrecondition(why)) {
    failed_ = why;
    return std::nullopt;
  }
  slow_.Start([this, why] { return Rejoin(why); }, deadline);
  return std::nullopt;
}

absl::StatusOr<std::optional<ClockLoop::Next>> ClockLoop::TryBegin(Time deadline) {
  if (finished_) return Next::kFinished;
  if (state_.is_to_tell()) {
    slow_.Start([this] { return state_.Tell(clock_); }, deadline);
    return std::nullopt;
  }
  if (std::exchange(moved_, false)) return Next::kMoved;
  const bool saves = state_.IsCutDue(clock_);
  const bool is_to_ask = participant_.IsToAskWhereToStop();
  // A stop may close the gate meanwhile. What follows goes by one answer: the exchange that begins
  // next asks again.
  const bool open = IsOpen();
  const bool needs_batch = open && !HasBatch();
  if (saves || is_to_ask || needs_batch || MadeAll() || NearlyMadeAll() || !open) {
    ASSIGN_OR_RETURN(const bool settled, exchange_->SettleUntil(deadline));
    if (!settled) return Next::kNotYet;
  }
  const bool asks = is_to_ask && !MadeAll();
  if (saves || asks) {
    slow_.Start([this, asks] { return SaveAndAsk(asks); }, deadline);
    return std::nullopt;
  }
  if (needs_batch) {
    const Time soon = std::min(deadline, std::chrono::steady_clock::now() + kStopCheckEvery);
    ASSIGN_OR_RETURN(const bool waited, AwaitBatch(soon));
    if (!waited) return soon < deadline ? std::nullopt : std::optional(Next::kNotYet);
  }
  if (MadeAll()) {
    slow_.Start(
        [this] {
          finished_ = true;
          return exchange_->ReadLatest();
        },
        deadline);
    return std::nullopt;
  }
  if (!open) RETURN_IF_ERROR(OnBegin(clock_));
  return Next::kClock;
}

absl::Status ClockLoop::SaveAndAsk(bool asks) {
  RETURN_IF_ERROR(SaveAtCut());
  return asks ? participant_.AskWhereToStop(clock_) : absl::OkStatus();
}

absl::Status ClockLoop::SaveAtCut() {
  if (!state_.IsCutDue(clock_)) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_->Settle());
  return state_.SaveForCut(clock_, *exchange_);
}

bool ClockLoop::IsStateDue() const {
  if (broken_off() || !state_.keeps()) return false;
  return state_.IsCutDue(clock_) || MadeAll() || !IsOpen();
}

absl::Status ClockLoop::OnBegin(uint64_t clock) {
  if (participant_.gate().Enter(clock)) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("stopped before the exchange of clock ", clock));
}

void ClockLoop::OnComplete(const ExchangeReport& report) {
  participant_.gate().Leave();
  Settled(report.clock + 1, false);
  reports_.Complete(report);
}

void ClockLoop::Settled(uint64_t clock, bool dropped) const {
  if (participant_.leases() != nullptr) participant_.leases()->Settle(clock, dropped);
}

void ClockLoop::End(v1::StepMetrics metrics) {
  if (broken_off()) return;
  ++clock_;
  metrics.set_clock(clock_);
  metrics.set_epoch(Epoch());
  reports_.Add(std::move(metrics));
}

bool ClockLoop::LastsForBatches() const {
  return participant_.leases() != nullptr && length().total_clocks() > 0;
}

bool ClockLoop::HasBatch() const {
  return !LastsForBatches() || leases_over_ || participant_.leases()->HasBatch();
}

absl::StatusOr<bool> ClockLoop::AwaitBatch(Time deadline) {
  ASSIGN_OR_RETURN(const LeasedBatches::State state, participant_.leases()->Await(deadline));
  leases_over_ = state == LeasedBatches::State::kOver;
  return state != LeasedBatches::State::kWaiting;
}

bool ClockLoop::MadeAll() const {
  if (idle_) return true;
  if (LastsForBatches()) return leases_over_;
  if (length().total_clocks() > 0) return reports_.version() >= length().total_clocks();
  return clock_ >= length().clocks();
}

bool ClockLoop::NearlyMadeAll() const {
  if (LastsForBatches()) return false;
  const uint64_t total = length().total_clocks();
  return total > 0 && reports_.version() + 2 * reports_.version_step() >= total;
}

ClockSpan ClockLoop::NextSpan() const {
  ClockSpan span;
  span.clock = clock_;
  span.first_step = FirstStep(length(), clock_);
  span.steps = length().steps_per_clock();
  // If each worker has its own number of steps, the last clock may have fewer.
  if (length().total_clocks() == 0) {
    span.steps = std::min(span.steps, length().steps() - span.first_step);
  }
  return span;
}

double ClockLoop::Epoch() const {
  uint64_t steps = FirstStep(length(), clock_);
  if (length().total_clocks() == 0) steps = std::min(steps, length().steps());
  return static_cast<double>(steps) / static_cast<double>(length().steps_per_epoch());
}

}  // namespace leeway
