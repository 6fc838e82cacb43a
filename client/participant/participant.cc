#include "client/participant/participant.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "client/calls/client_options.h"
#include "common/clock.h"
#include "common/first_step.h"
#include "common/status.h"
#include "common/update/averaging.h"

namespace leeway {
namespace {

// Four heartbeats fit into a lease, so that three of them may be lost. Half a second is the
// maximum, so that the live view gets a few heartbeats a second.
Duration HeartbeatEvery(const v1::TrainingJob& job) {
  return FromSeconds(std::min(job.limits().lease_seconds() / 4, 0.5));
}

}  // namespace

Participant::Participant(const ParticipantContext& context)
    : context_(context),
      gate_([this] { BreakOff(); }),
      keeps_state_(context.registration.save_state()) {}

// The heartbeats end first, because they use the gate and the client.
Participant::~Participant() { context_.session.EndHeartbeats(); }

absl::Status Participant::Open() {
  const v1::TrainingJob& job = context_.registration.job();
  ASSIGN_OR_RETURN(ParameterClientOptions options, ClientOptionsOf(context_.registration));
  options.on_unreached = [this] { context_.session.BeatSoon(); };
  options.goes_on = [this] { return context_.session.others_are_heard(); };
  // Elastic answers are older than the version that they name, and the saved state of a spread
  // worker is loaded into the vector. So neither may rely on what the vector held before.
  options.weights_stay = !job.exchange().has_elastic() && !job.exchange().delta().spread();
  ASSIGN_OR_RETURN(client_, ParameterClient::Open(options, context_.transport));
  if (job.data().assignment() == v1::ASSIGNMENT_LEASED) {
    const v1::JobLength& length = context_.registration.length();
    LeasedBatches::Steps steps{.of_clock = length.steps_per_clock()};
    // LeasedBatches counts as if all earlier clocks had had this number of steps.
    const uint64_t before = length.first_clock() * length.steps_per_clock();
    if (length.total_clocks() == 0) steps.all = length.steps() - length.first_step() + before;
    leases_ = std::make_unique<LeasedBatches>(LeasedBatches::Of(context_.session), steps);
  }
  return OpenGroup();
}

absl::Status Participant::OpenGroup() {
  const v1::RegisterWorkerReply& registration = context_.registration;
  if (context_.contributions == nullptr || !registration.has_group()) return absl::OkStatus();
  const v1::TrainingJob& job = registration.job();
  ASSIGN_OR_RETURN(
      group_, HostGroup::Open(
                  {.rank = registration.rank(),
                   .generation = registration.generation(),
                   .members = registration.group(),
                   .averaged = AveragedElementsOf(registration.schema()),
                   .batches = {static_cast<double>(job.data().batch_size()), registration.length()},
                   .exchange_seconds = job.limits().exchange_seconds(),
                   .goes_on = [this] { return context_.session.others_are_heard(); }},
                  client_->layout(), *context_.contributions));
  if (group_ == nullptr) {
    spdlog::info("no other worker can read this worker's memory, so it sends its own contribution");
    return absl::OkStatus();
  }
  spdlog::info("{} workers of this host combine their contributions; worker {} sends for all",
               registration.group().members_size(), registration.group().members(0).rank());
  return absl::OkStatus();
}

void Participant::Start(ClockExchange& exchange, InitialWeights initial) {
  exchange_ = &exchange;
  initial_ = std::move(initial);
  context_.session.StartHeartbeats(
      HeartbeatEvery(context_.registration.job()),
      {.waiting = [this] { return Waiting(); },
       .on_stop_at = [this](uint64_t clock) { gate_.StopAt(clock); },
       .on_servers = [this](const auto& servers) { client_->MoveServers(servers); },
       .on_group =
           [this](const v1::HostGroup& group) {
             if (group_ != nullptr) group_->TakeOffers(group);
           },
       .on_refused = [this](const absl::Status& why) { gate_.Refuse(why); }});
  // The job may already be stopping when this life begins.
  if (context_.registration.has_stop_at()) gate_.StopAt(context_.registration.stop_at());
}

std::string Participant::Waiting() const {
  std::string waiting = group_ != nullptr ? group_->Waiting() : "";
  if (waiting.empty()) waiting = client_->Waiting();
  return waiting.empty() && leases_ != nullptr ? leases_->Waiting() : waiting;
}

void Participant::BreakOff() {
  client_->Cancel();
  if (group_ != nullptr) group_->Cancel();
}

absl::Status Participant::Attach() {
  const v1::RegisterWorkerReply& registration = context_.registration;
  RETURN_IF_ERROR(OnBegin(clock_));
  ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, client_->Attach());
  // All ranks compute the same first weights, so one rank is enough to send them; the others' first
  // read waits for that. If the job goes on without lost workers, any rank may send them, because
  // rank 0 may be lost.
  const bool any = registration.job().workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE;
  if (attachment.needs_initialize && (registration.rank() == 0 || any)) {
    RETURN_IF_ERROR(Initialize());
  }
  clock_ = attachment.clock;
  RETURN_IF_ERROR(LoadState());
  absl::Status begun = BeginAt(attachment);
  // The worker joins at another clock only if it has no loaded state, because that state belongs to
  // its clock. To start afresh it needs a new participant.
  if (absl::IsAlreadyExists(begun) && !has_state_) begun = Join().status();
  RETURN_IF_ERROR(begun);
  gate_.Leave();
  spdlog::info("training from clock {} of {} (steps a clock: {}, an epoch: {})", clock_,
               registration.length().clocks(), registration.length().steps_per_clock(),
               registration.length().steps_per_epoch());
  return absl::OkStatus();
}

absl::Status Participant::Initialize() {
  ASSIGN_OR_RETURN(const FloatBuffer weights, initial_());
  return client_->Initialize(weights.span());
}

absl::Status Participant::BeginAt(const ParameterClient::Attachment& attachment) {
  clock_ = completed_ = attachment.clock;
  knows_clock_ = true;
  if (leases_ != nullptr) leases_->GoOnAt(clock_);
  context_.session.SetClock(clock_);
  // The gate is asked, because an earlier life may have gone beyond the clock at which all agreed
  // to stop.
  RETURN_IF_ERROR(OnBegin(clock_));
  ASSIGN_OR_RETURN(progress_.version, exchange_->Begin(clock_));
  has_state_ = true;
  return absl::OkStatus();
}

absl::StatusOr<ParameterClient::Attachment> Participant::Join() {
  while (true) {
    ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, client_->Attach());
    const absl::Status begun = BeginAt(attachment);
    if (begun.ok()) return attachment;
    if (!absl::IsAlreadyExists(begun)) return begun;
  }
}

absl::Status Participant::Rejoin(const absl::Status& why) {
  if (!exchange_->Abandon()) return why;
  gate_.Leave();
  RETURN_IF_ERROR(OnBegin(clock_));
  ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, Join());
  gate_.Leave();
  Settled(attachment.counted, true);
  spdlog::debug("{}; goes on at clock {}", std::string(why.message()), clock_);
  if (!progress_.kept.has_value()) return absl::OkStatus();
  const bool counts = attachment.counted >= progress_.kept->clock();
  if (!counts) exchange_->Drop(progress_.kept->clock() - 1);
  ReportBrokenOff(counts);
  return absl::OkStatus();
}

void Participant::Settled(uint64_t clock, bool dropped) const {
  if (leases_ != nullptr) leases_->Settle(clock, dropped);
}

absl::Status Participant::LoadState() {
  const v1::RegisterWorkerReply& registration = context_.registration;
  if (!registration.resumed() || !keeps_state_) return absl::OkStatus();
  const auto state = context_.session.LoadWorkerState();
  if (absl::IsNotFound(state.status())) return absl::OkStatus();
  RETURN_IF_ERROR(state.status());
  // The state is empty if the earlier life was stopped before it began.
  if (state->bytes.empty()) return absl::OkStatus();
  // An earlier life since the resumption may have gone beyond the checkpoint. Its state is lost,
  // and the checkpoint's state is older than this clock.
  if (state->clock != clock_ && exchange_->TakesOlderState()) {
    spdlog::warn(
        "the saved state is from clock {}; this worker continues with that state at clock {}",
        state->clock, clock_);
  } else if (state->clock != clock_) {
    spdlog::warn(
        "the saved state is from clock {}, but this worker continues at clock {}, so the state is "
        "not used",
        state->clock, clock_);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(exchange_->LoadState(state->bytes));
  has_state_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> Participant::UnlessStopped(const std::function<absl::Status()>& work) {
  const absl::Status status = work();
  if (absl::IsCancelled(status)) {
    RETURN_IF_ERROR(gate_.refused());
    return false;
  }
  RETURN_IF_ERROR(status);
  return true;
}

absl::Status Participant::OnBegin(uint64_t clock) {
  if (gate_.Enter(clock)) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("stopped before the exchange of clock ", clock));
}

void Participant::OnComplete(const ExchangeReport& report) {
  gate_.Leave();
  completed_ = report.clock + 1;
  Settled(completed_, false);
  progress_.version_step = report.version - std::min(progress_.version, report.version);
  progress_.version = report.version;
  progress_.last = report;
  context_.session.SetClock(completed_);
  ReportIfComplete();
}

bool Participant::IsToAskWhereToStop() const {
  return !asked_where_to_stop_ && context_.session.stop_requested();
}

absl::Status Participant::AskWhereToStop() {
  if (!IsToAskWhereToStop()) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_->Settle());
  ASSIGN_OR_RETURN(const uint64_t stop_at, context_.session.StopAt(clock_));
  asked_where_to_stop_ = true;
  spdlog::info("stopping at clock {}", stop_at);
  gate_.StopAt(stop_at);
  return absl::OkStatus();
}

bool Participant::LastsForBatches() const {
  return leases_ != nullptr && context_.registration.length().total_clocks() > 0;
}

bool Participant::HasBatch() const {
  return !LastsForBatches() || leases_over_ || leases_->HasBatch();
}

absl::StatusOr<bool> Participant::AwaitBatch(Time deadline) {
  if (HasBatch()) return true;
  // The exchange is settled, because batches in progress must count before all batches can be done.
  RETURN_IF_ERROR(exchange_->Settle());
  ASSIGN_OR_RETURN(const LeasedBatches::State state, leases_->Await(deadline));
  leases_over_ = state == LeasedBatches::State::kOver;
  return state != LeasedBatches::State::kWaiting;
}

void Participant::ReportDone() {
  if (leases_ != nullptr) leases_->Flush();
}

bool Participant::MadeAll() const {
  if (LastsForBatches()) return leases_over_;
  const v1::JobLength& length = context_.registration.length();
  if (length.total_clocks() > 0) return progress_.version >= length.total_clocks();
  return clock_ >= length.clocks();
}

bool Participant::NearlyMadeAll() const {
  if (LastsForBatches()) return false;
  const uint64_t total = context_.registration.length().total_clocks();
  return total > 0 && progress_.version + 2 * progress_.version_step >= total;
}

ClockSpan Participant::NextSpan() const {
  const v1::JobLength& length = context_.registration.length();
  ClockSpan span;
  span.clock = clock_;
  span.first_step = FirstStep(length, clock_);
  span.steps = length.steps_per_clock();
  // If each worker has its own number of steps, the last clock may have fewer.
  if (length.total_clocks() == 0) {
    span.steps = std::min(span.steps, length.steps() - span.first_step);
  }
  return span;
}

void Participant::Advance(v1::StepMetrics metrics) {
  ++clock_;
  metrics.set_clock(clock_);
  metrics.set_epoch(Epoch());
  progress_.kept = std::move(metrics);
  ReportIfComplete();
}

void Participant::ReportIfComplete() {
  auto& kept = progress_.kept;
  if (!kept.has_value() || kept->clock() != completed_) return;
  kept->set_staleness(progress_.last.staleness);
  kept->set_exchange_seconds(progress_.last.exchange_seconds);
  kept->set_wait_seconds(progress_.last.wait_seconds);
  ReportKept();
}

void Participant::ReportBrokenOff(bool counts) {
  auto& kept = progress_.kept;
  // Everything before the clock at which the worker goes on is over.
  kept->set_clock(completed_);
  kept->set_epoch(Epoch());
  if (!counts) {
    kept->set_dropped_steps(kept->steps());
    kept->set_dropped_examples(kept->examples());
    kept->clear_steps();
    kept->clear_examples();
    kept->clear_train_loss();
  }
  ReportKept();
}

void Participant::ReportKept() {
  auto& kept = progress_.kept;
  const Traffic traffic = client_->traffic();
  kept->set_bytes_sent(traffic.sent - progress_.reported.sent);
  kept->set_bytes_received(traffic.received - progress_.reported.received);
  progress_.reported = traffic;
  context_.session.Report(*kept);
  kept.reset();
}

double Participant::Epoch() const {
  const v1::JobLength& length = context_.registration.length();
  uint64_t steps = FirstStep(length, clock_);
  if (length.total_clocks() == 0) steps = std::min(steps, length.steps());
  return static_cast<double>(steps) / static_cast<double>(length.steps_per_epoch());
}

absl::Status Participant::KeepState() {
  if (keeps_state_) return absl::OkStatus();
  RETURN_IF_ERROR(context_.session.KeepState());
  keeps_state_ = true;
  return absl::OkStatus();
}

bool Participant::AtCut() const {
  const uint64_t every = context_.registration.cut_every();
  return keeps_state_ && every > 0 && clock_ % every == 0;
}

absl::Status Participant::SaveAtCut() {
  if (!AtCut()) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_->Settle());
  const absl::Status saved = SaveState();
  if (absl::IsAborted(saved)) return saved;
  if (!saved.ok()) spdlog::warn("{}", std::string(saved.message()));
  return absl::OkStatus();
}

absl::Status Participant::SaveState() {
  if (!keeps_state_ || progress_.saved_at == completed_) return absl::OkStatus();
  std::string state;
  if (has_state_) {
    ASSIGN_OR_RETURN(state, exchange_->SaveState());
  }
  RETURN_IF_ERROR(context_.session.SaveWorkerState(completed_, state));
  progress_.saved_at = completed_;
  return absl::OkStatus();
}

}  // namespace leeway
