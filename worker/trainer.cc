#include "worker/trainer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "client/client_options.h"
#include "common/buffer.h"
#include "common/counted.h"
#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "common/update/averaging.h"
#include "config/length.h"
#include "worker/evaluate.h"
#include "worker/formats/model_file.h"

namespace leeway {
namespace {

// A lease outlives three lost heartbeats; the live view wants a few a second.
Duration HeartbeatEvery(const v1::TrainingJob& job) {
  return FromSeconds(std::min(job.limits().lease_seconds() / 4, 0.5));
}

// Waiting for a batch, a worker looks so often whether it is to stop.
constexpr Duration kAskAfter = std::chrono::milliseconds(200);

uint64_t EvaluateEvery(const v1::TrainingJob& job, const v1::JobLength& length) {
  if (!job.evaluation().has_every()) return 0;
  return IntervalClocks(job.evaluation().every(), length);
}

}  // namespace

Trainer::Trainer(const TrainerContext& context)
    : context_(context),
      registration_(context.registration),
      job_(context.registration.job()),
      evaluates_(context.registration.rank() == 0 && context.test != nullptr),
      evaluate_every_(EvaluateEvery(job_, context.registration.length())),
      gate_([this] { BreakOff(); }),
      saved_clock_(std::numeric_limits<uint64_t>::max()) {}

// The heartbeats use the gate and the client.
Trainer::~Trainer() { context_.session.EndHeartbeats(); }

absl::StatusOr<Trainer::End> Trainer::Run() {
  RETURN_IF_ERROR(Open());
  ASSIGN_OR_RETURN(const bool attached, UnlessStopped([this] { return Attach(); }));
  if (!attached) {
    // What it would have kept is part of the job's last checkpoint all the same.
    if (knows_clock_) RETURN_IF_ERROR(SaveState());
    return End{v1::LEAVE_STOPPED, completed_};
  }
  const absl::StatusOr<bool> ran = RunClocks();
  // However it ended: what is not reported others, or this worker's next trainer, do once more.
  if (leases_) leases_->Flush();
  ASSIGN_OR_RETURN(const bool stopped, ran);
  if (!stopped && evaluates_) {
    ASSIGN_OR_RETURN(const v1::EvaluationMetrics metrics, Evaluate());
    context_.session.Report(metrics);
  }
  RETURN_IF_ERROR(SaveState());
  return End{stopped ? v1::LEAVE_STOPPED : v1::LEAVE_FINISHED, completed_};
}

absl::Status Trainer::Open() {
  ASSIGN_OR_RETURN(ParameterClientOptions options, ClientOptionsOf(registration_));
  options.on_unreached = [this] { context_.session.BeatSoon(); };
  // Elastic answers are older than the version that they name, and a spread worker's saved state is
  // loaded into the vector.
  options.weights_stay = !job_.exchange().has_elastic() && !job_.exchange().delta().spread();
  ASSIGN_OR_RETURN(client_, ParameterClient::Open(options, context_.transport));
  if (job_.data().assignment() == v1::ASSIGNMENT_LEASED) {
    leases_ = std::make_unique<LeasedBatches>(
        registration_.length().steps_per_clock(),
        LeasedBatches::Coordinator{.ask =
                                       [this](const v1::LeaseDataRequest& request) {
                                         return context_.session.LeaseData(request);
                                       },
                                   .break_off = [this] { context_.session.EndLeases(); }});
  }
  steps_ =
      std::make_unique<LocalSteps>(job_, registration_.rank(), registration_.length(),
                                   context_.data, leases_.get(), context_.model, context_.sleep);
  RETURN_IF_ERROR(OpenGroup());
  RETURN_IF_ERROR(OpenExchange());
  StartHeartbeats();
  // A life that begins while the job is stopping.
  if (registration_.has_stop_at()) gate_.StopAt(registration_.stop_at());
  return absl::OkStatus();
}

absl::Status Trainer::OpenGroup() {
  if (context_.contributions == nullptr || !registration_.has_group()) return absl::OkStatus();
  ASSIGN_OR_RETURN(group_,
                   HostGroup::Open({.rank = registration_.rank(),
                                    .generation = registration_.generation(),
                                    .members = registration_.group(),
                                    .averaged = AveragedElementsOf(registration_.schema()),
                                    .batches = {static_cast<double>(job_.data().batch_size()),
                                                registration_.length().steps_per_clock(),
                                                registration_.length().steps()},
                                    .exchange_seconds = job_.limits().exchange_seconds()},
                                   client_->layout(), *context_.contributions));
  if (group_ == nullptr) {
    spdlog::info("no other worker reaches this one's memory: it hands in for itself");
    return absl::OkStatus();
  }
  spdlog::info("{} workers of this host combine their contributions; worker {} sends for all",
               registration_.group().members_size(), registration_.group().members(0).rank());
  return absl::OkStatus();
}

absl::Status Trainer::OpenExchange() {
  ASSIGN_OR_RETURN(exchange_,
                   MakeExchange({.job = job_,
                                 .schema = registration_.schema(),
                                 .length = registration_.length(),
                                 .rank = registration_.rank(),
                                 .client = *client_,
                                 .backend = context_.model.backend(),
                                 .steps = *steps_,
                                 .listener = *this,
                                 .group = group_.get(),
                                 .loss_scales = {registration_.loss_scales().begin(),
                                                 registration_.loss_scales().end()},
                                 .report_loss_scale = [this](const v1::LossScale& scale) {
                                   return context_.session.ReportLossScale(scale);
                                 }}));
  return absl::OkStatus();
}

void Trainer::StartHeartbeats() {
  context_.session.StartHeartbeats(
      HeartbeatEvery(job_),
      {.waiting = [this] { return Waiting(); },
       .on_stop_at = [this](uint64_t clock) { gate_.StopAt(clock); },
       .on_servers = [this](const auto& servers) { client_->MoveServers(servers); },
       .on_group =
           [this](const v1::HostGroup& group) {
             if (group_ != nullptr) group_->TakeOffers(group);
           },
       .on_refused = [this](const absl::Status& why) { gate_.Refuse(why); }});
}

std::string Trainer::Waiting() const {
  std::string waiting = group_ != nullptr ? group_->Waiting() : "";
  if (waiting.empty()) waiting = client_->Waiting();
  return waiting.empty() && leases_ ? leases_->Waiting() : waiting;
}

void Trainer::BreakOff() {
  client_->Cancel();
  if (group_ != nullptr) group_->Cancel();
}

absl::Status Trainer::Attach() {
  RETURN_IF_ERROR(OnBegin(clock_));
  ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, client_->Attach());
  // All ranks compute the same weights; one is enough to hand them in, and the others' first read
  // waits for it. Where nobody waits for a lost one, it may be any.
  const bool any = job_.workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE;
  if (attachment.needs_initialize && (registration_.rank() == 0 || any)) {
    RETURN_IF_ERROR(Initialize());
  }
  clock_ = attachment.clock;
  RETURN_IF_ERROR(LoadState());
  absl::Status begun = BeginAt(attachment);
  // What was loaded does not go on at another clock: it takes a new trainer to start afresh.
  if (absl::IsAlreadyExists(begun) && !has_state_) begun = Join().status();
  RETURN_IF_ERROR(begun);
  gate_.Leave();
  // The evaluation of this clock may be lost with the life before, and early_stop counts them.
  const bool again = job_.evaluation().has_early_stop() && clock_ > 0;
  if (evaluate_every_ > 0) evaluated_ = (clock_ - (again ? 1 : 0)) / evaluate_every_;
  spdlog::info("training from clock {} of {} (steps a clock: {}, an epoch: {})", clock_,
               registration_.length().clocks(), registration_.length().steps_per_clock(),
               registration_.length().steps_per_epoch());
  return again ? EvaluateWhenDue() : absl::OkStatus();
}

absl::Status Trainer::Initialize() {
  FloatBuffer weights(registration_.schema().total());
  if (job_.model().has_initial()) {
    ASSIGN_OR_RETURN(weights, ReadInitialWeights(job_.model(), context_.data_dir, context_.model));
    spdlog::info("the weights start from {}", job_.model().initial());
  } else {
    context_.model.Initialize(job_.metadata().seed(), weights.span());
  }
  return client_->Initialize(weights.span());
}

absl::Status Trainer::BeginAt(const ParameterClient::Attachment& attachment) {
  clock_ = completed_ = attachment.clock;
  knows_clock_ = true;
  context_.session.SetClock(clock_);
  // A life before this one may have handed in more than all agreed to stop at.
  RETURN_IF_ERROR(OnBegin(clock_));
  ASSIGN_OR_RETURN(version_, exchange_->Begin(clock_));
  has_state_ = true;
  return absl::OkStatus();
}

absl::StatusOr<ParameterClient::Attachment> Trainer::Join() {
  while (true) {
    ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, client_->Attach());
    const absl::Status begun = BeginAt(attachment);
    if (begun.ok()) return attachment;
    if (!absl::IsAlreadyExists(begun)) return begun;
  }
}

absl::Status Trainer::Rejoin(const absl::Status& why) {
  if (!exchange_->Abandon()) return why;
  gate_.Leave();
  RETURN_IF_ERROR(OnBegin(clock_));
  ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, Join());
  gate_.Leave();
  if (leases_) leases_->Settle(attachment.counted, true);
  spdlog::debug("{}; goes on at clock {}", std::string(why.message()), clock_);
  if (kept_.has_value()) {
    const bool counts = attachment.counted >= kept_->clock();
    if (!counts) exchange_->Drop(kept_->clock() - 1);
    ReportBrokenOff(counts);
  }
  return EvaluateWhenDue();
}

absl::Status Trainer::LoadState() {
  if (!registration_.resumed() || !registration_.save_state()) return absl::OkStatus();
  const auto state = context_.session.LoadWorkerState();
  if (absl::IsNotFound(state.status())) return absl::OkStatus();
  RETURN_IF_ERROR(state.status());
  // A life that was stopped before it began had nothing.
  if (state->bytes.empty()) return absl::OkStatus();
  // A life that ended after the resumption has gone beyond the checkpoint; what it kept is lost.
  if (state->clock != clock_) {
    spdlog::warn("the saved state is of clock {}, this worker goes on at clock {}: starting afresh",
                 state->clock, clock_);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(exchange_->LoadState(state->bytes));
  has_state_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> Trainer::RunClocks() {
  while (!Over()) {
    ASSIGN_OR_RETURN(const bool done, UnlessStopped([this] { return RunClockOrRejoin(); }));
    if (!done) return true;
  }
  ASSIGN_OR_RETURN(const bool read, UnlessStopped([this] { return exchange_->ReadLatest(); }));
  return !read;
}

absl::StatusOr<bool> Trainer::UnlessStopped(const std::function<absl::Status()>& work) {
  const absl::Status status = work();
  if (absl::IsCancelled(status)) {
    RETURN_IF_ERROR(gate_.refused());
    return false;
  }
  RETURN_IF_ERROR(status);
  return true;
}

absl::Status Trainer::OnBegin(uint64_t clock) {
  if (gate_.Enter(clock)) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("stopped before the exchange of clock ", clock));
}

void Trainer::OnComplete(const ExchangeReport& report) {
  gate_.Leave();
  completed_ = report.clock + 1;
  if (leases_) leases_->Settle(completed_);
  version_step_ = report.version - std::min(version_, report.version);
  version_ = report.version;
  last_exchange_ = report;
  context_.session.SetClock(completed_);
  ReportIfComplete();
}

absl::Status Trainer::AskWhereToStop() {
  if (asked_where_to_stop_ || !context_.session.stop_requested()) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_->Settle());
  ASSIGN_OR_RETURN(const uint64_t stop_at, context_.session.StopAt(clock_));
  asked_where_to_stop_ = true;
  spdlog::info("stopping at clock {}", stop_at);
  gate_.StopAt(stop_at);
  return absl::OkStatus();
}

bool Trainer::Over() const {
  const v1::JobLength& length = registration_.length();
  if (length.total_clocks() > 0) {
    // Who has no data makes none of the exchanges.
    if (!leases_ && context_.data.steps_per_epoch() == 0) return true;
    return leases_ ? leases_over_ : version_ >= length.total_clocks();
  }
  return clock_ >= length.clocks();
}

bool Trainer::NearlyOver() const {
  const uint64_t total = registration_.length().total_clocks();
  return total > 0 && !leases_ && version_ + 2 * version_step_ >= total;
}

ClockSpan Trainer::NextSpan() const {
  const v1::JobLength& length = registration_.length();
  ClockSpan span;
  span.clock = clock_;
  span.first_step = clock_ * length.steps_per_clock();
  span.steps = length.steps_per_clock();
  // Where each worker has its own number of steps, the last clock may have fewer.
  if (length.total_clocks() == 0) {
    span.steps = std::min(span.steps, length.steps() - span.first_step);
  }
  return span;
}

absl::Status Trainer::RunClockOrRejoin() {
  const absl::Status status = RunClock();
  return absl::IsAlreadyExists(status) ? Rejoin(status) : status;
}

absl::StatusOr<bool> Trainer::AwaitBatch() {
  const bool by_batches = leases_ && registration_.length().total_clocks() > 0;
  if (!by_batches || leases_->HasBatch()) return true;
  // What is under way must count before all can be done.
  RETURN_IF_ERROR(exchange_->Settle());
  while (gate_.IsOpen(clock_)) {
    ASSIGN_OR_RETURN(const LeasedBatches::State state, leases_->Await(kAskAfter));
    leases_over_ = state == LeasedBatches::State::kOver;
    if (state != LeasedBatches::State::kWaiting) return !leases_over_;
    RETURN_IF_ERROR(AskWhereToStop());
  }
  return true;
}

absl::Status Trainer::RunClock() {
  RETURN_IF_ERROR(AskWhereToStop());
  ASSIGN_OR_RETURN(const bool goes_on, AwaitBatch());
  if (!goes_on) return absl::OkStatus();
  // One whose exchange may not begin need not be computed.
  if (!gate_.IsOpen(clock_)) {
    RETURN_IF_ERROR(exchange_->Settle());
    return OnBegin(clock_);
  }
  const ClockSpan span = NextSpan();
  ASSIGN_OR_RETURN(const ClockReport report, exchange_->Run(span));
  ++clock_;
  Keep(span, report);
  if (Over() || NearlyOver()) RETURN_IF_ERROR(exchange_->Settle());
  RETURN_IF_ERROR(SaveAtCut());
  return EvaluateWhenDue();
}

void Trainer::Keep(const ClockSpan& span, const ClockReport& report) {
  v1::StepMetrics& metrics = kept_.emplace();
  metrics.set_clock(clock_);
  metrics.set_epoch(Epoch());
  metrics.set_steps(report.steps);
  metrics.set_examples(report.examples);
  if (report.examples > 0) {
    metrics.set_train_loss(report.loss_sum / static_cast<double>(report.examples));
  }
  metrics.set_learning_rate(report.learning_rate);
  metrics.set_overflowed_steps(report.overflowed_steps);
  metrics.set_loss_scale(report.loss_scale);
  const bool skipped = report.left_out && report.overflowed_steps == 0;
  metrics.set_skipped_contributions(skipped ? 1 : 0);
  metrics.set_clipped_contributions(report.clipped ? 1 : 0);
  if (report.overflowed_steps > 0) {
    spdlog::info("worker {}, clock {}: left out {} of fp16: {}", registration_.rank(), span.clock,
                 Counted(report.overflowed_steps, "overflowed step"),
                 report.why.empty() ? fmt::format("the loss scale is {} now", report.loss_scale)
                                    : report.why);
  }
  if (skipped) {
    spdlog::warn("worker {}, clock {}: left out of the update (exchange.on_bad_gradient): {}",
                 registration_.rank(), span.clock, report.why);
  }
  metrics.set_data_seconds(report.data_seconds);
  metrics.set_compute_seconds(report.compute_seconds);
  metrics.set_forward_seconds(report.forward_seconds);
  metrics.set_backward_seconds(report.backward_seconds);
  ReportIfComplete();
}

void Trainer::ReportIfComplete() {
  if (!kept_.has_value() || kept_->clock() != completed_) return;
  kept_->set_staleness(last_exchange_.staleness);
  kept_->set_exchange_seconds(last_exchange_.exchange_seconds);
  kept_->set_wait_seconds(last_exchange_.wait_seconds);
  ReportKept();
}

void Trainer::ReportBrokenOff(bool counts) {
  // Everything up to the clock where it goes on is over.
  kept_->set_clock(completed_);
  kept_->set_epoch(Epoch());
  if (!counts) {
    kept_->set_dropped_steps(kept_->steps());
    kept_->set_dropped_examples(kept_->examples());
    kept_->clear_steps();
    kept_->clear_examples();
    kept_->clear_train_loss();
  }
  ReportKept();
}

void Trainer::ReportKept() {
  const Traffic traffic = client_->traffic();
  kept_->set_bytes_sent(traffic.sent - reported_.sent);
  kept_->set_bytes_received(traffic.received - reported_.received);
  reported_ = traffic;
  context_.session.Report(*kept_);
  kept_.reset();
}

double Trainer::Epoch() const {
  const v1::JobLength& length = registration_.length();
  uint64_t steps = clock_ * length.steps_per_clock();
  if (length.total_clocks() == 0) steps = std::min(steps, length.steps());
  return static_cast<double>(steps) / static_cast<double>(length.steps_per_epoch());
}

absl::Status Trainer::SaveAtCut() {
  const uint64_t every = registration_.cut_every();
  if (!registration_.save_state() || every == 0 || clock_ % every != 0) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_->Settle());
  // Without it there is one checkpoint less; that is no reason to stop training.
  const absl::Status saved = SaveState();
  if (absl::IsAborted(saved)) return saved;
  if (!saved.ok()) spdlog::warn("{}", std::string(saved.message()));
  return absl::OkStatus();
}

absl::Status Trainer::SaveState() {
  if (!registration_.save_state() || saved_clock_ == completed_) return absl::OkStatus();
  std::string state;
  if (has_state_) {
    ASSIGN_OR_RETURN(state, exchange_->SaveState());
  }
  RETURN_IF_ERROR(context_.session.SaveWorkerState(completed_, state));
  saved_clock_ = completed_;
  return absl::OkStatus();
}

absl::Status Trainer::EvaluateWhenDue() {
  // The last one follows when all is done.
  if (evaluate_every_ == 0 || !evaluates_ || Over()) return absl::OkStatus();
  // A clock that was jumped over is made up for at the next.
  if (clock_ / evaluate_every_ <= evaluated_) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_->Settle());
  evaluated_ = clock_ / evaluate_every_;
  ASSIGN_OR_RETURN(const v1::EvaluationMetrics metrics, Evaluate());
  if (job_.evaluation().has_early_stop()) return context_.session.ReportNow(metrics);
  context_.session.Report(metrics);
  return absl::OkStatus();
}

absl::StatusOr<v1::EvaluationMetrics> Trainer::Evaluate() {
  std::span<const float> weights = exchange_->weights();
  if (job_.evaluation().weights() == v1::EVALUATED_WEIGHTS_AVERAGE) {
    average_.resize(weights.size());
    RETURN_IF_ERROR(client_->Wait(client_->PullAverage(average_)).status());
    weights = average_;
  }
  ASSIGN_OR_RETURN(
      v1::EvaluationMetrics metrics,
      leeway::Evaluate(context_.model, *context_.test, LabelLoss(job_.model()), weights));
  metrics.set_clock(clock_);
  metrics.set_epoch(Epoch());
  spdlog::info("clock {}: test loss {:.6g}{}", clock_, metrics.test_loss(),
               metrics.has_test_accuracy()
                   ? fmt::format(", test accuracy {:.2f} %", 100 * metrics.test_accuracy())
                   : "");
  return metrics;
}

}  // namespace leeway
