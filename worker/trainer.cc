#include "worker/trainer.h"

#include <chrono>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "common/buffer.h"
#include "common/counted.h"
#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "config/length.h"
#include "exchange/carriers/host_group_carrier.h"
#include "worker/evaluate.h"
#include "worker/formats/model_file.h"

namespace leeway {
namespace {

// How often a worker that waits for a batch checks whether it must stop.
constexpr Duration kAskAfter = std::chrono::milliseconds(200);

uint64_t EvaluateEvery(const v1::TrainingJob& job, const v1::JobLength& length) {
  if (!job.evaluation().has_every()) return 0;
  return IntervalClocks(job.evaluation().every(), length);
}

void LogLeftOut(uint32_t rank, uint64_t clock, const ClockReport& report) {
  if (report.overflowed_steps > 0) {
    spdlog::info("worker {}, clock {}: left out {} in fp16: {}", rank, clock,
                 Counted(report.overflowed_steps, "overflowed step"),
                 report.why.empty() ? fmt::format("the loss scale is {} now", report.loss_scale)
                                    : report.why);
  } else if (report.left_out) {
    spdlog::warn("worker {}, clock {}: left out of the update (exchange.on_bad_gradient): {}", rank,
                 clock, report.why);
  }
}

v1::StepMetrics MetricsOf(const ClockReport& report) {
  v1::StepMetrics metrics;
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
  metrics.set_replaced_pictures(report.replaced);
  metrics.set_data_seconds(report.data_seconds);
  metrics.set_compute_seconds(report.compute_seconds);
  metrics.set_forward_seconds(report.forward_seconds);
  metrics.set_backward_seconds(report.backward_seconds);
  return metrics;
}

}  // namespace

Trainer::Trainer(const TrainerContext& context)
    : context_(context),
      registration_(context.registration),
      job_(context.registration.job()),
      evaluates_(context.registration.rank() == 0 && context.test != nullptr),
      evaluate_every_(EvaluateEvery(job_, context.registration.length())),
      participant_({.registration = context.registration,
                    .session = context.session,
                    .contributions = context.contributions,
                    .transport = context.transport}) {}

absl::StatusOr<Trainer::End> Trainer::Run() {
  RETURN_IF_ERROR(Open());
  ASSIGN_OR_RETURN(const bool attached, participant_.UnlessStopped([this] { return Attach(); }));
  if (!attached) {
    // Saves the state even if this worker has not attached, because the state is part of the job's
    // last checkpoint.
    if (participant_.knows_clock()) RETURN_IF_ERROR(participant_.SaveState());
    return End{v1::LEAVE_STOPPED, clock()};
  }
  const absl::StatusOr<bool> ran = RunClocks();
  participant_.ReportDone();
  ASSIGN_OR_RETURN(const bool stopped, ran);
  if (!stopped && evaluates_) {
    ASSIGN_OR_RETURN(const v1::EvaluationMetrics metrics, Evaluate());
    context_.session.Report(metrics);
  }
  RETURN_IF_ERROR(participant_.SaveState());
  return End{stopped ? v1::LEAVE_STOPPED : v1::LEAVE_FINISHED, clock()};
}

absl::Status Trainer::Open() {
  RETURN_IF_ERROR(participant_.Open());
  steps_ = std::make_unique<LocalSteps>(job_, registration_.rank(), registration_.length(),
                                        context_.data, participant_.leases(), context_.model,
                                        context_.sleep);
  RETURN_IF_ERROR(OpenRunner());
  participant_.Start(runner_->exchange(), [this] { return InitialWeights(); });
  return absl::OkStatus();
}

absl::Status Trainer::OpenRunner() {
  carrier_ = MakeServerCarrier(participant_.client(), participant_.group());
  auto made = MakeClockRunner(
      {.job = job_,
       .schema = registration_.schema(),
       .length = registration_.length(),
       .rank = registration_.rank(),
       .carrier = *carrier_,
       .backend = context_.model.backend(),
       .steps = *steps_,
       .listener = participant_,
       .loss_scales = {registration_.loss_scales().begin(), registration_.loss_scales().end()},
       .report_loss_scale = [this](const v1::LossScale& scale) {
         return context_.session.ReportLossScale(scale);
       }});
  const bool own_memory = !context_.model.backend().shares_host_memory();
  if (own_memory && absl::IsResourceExhausted(made.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the exchange's vectors do not fit on the device beside a batch of ",
                     Counted(job_.data().batch_size(), "example"), ": ", made.status().message(),
                     "; `leeway plan` shows the memory of each"));
  }
  RETURN_IF_ERROR(made.status());
  runner_ = *std::move(made);
  return absl::OkStatus();
}

absl::Status Trainer::Attach() {
  RETURN_IF_ERROR(participant_.Attach());
  // The previous life may have ended before the evaluation at this clock, and early_stop counts
  // evaluations. So this life makes the evaluation again.
  const uint64_t clock = participant_.clock();
  const bool again = job_.evaluation().has_early_stop() && clock > 0;
  if (evaluate_every_ > 0) evaluated_ = (clock - (again ? 1 : 0)) / evaluate_every_;
  return again ? EvaluateWhenDue() : absl::OkStatus();
}

absl::StatusOr<FloatBuffer> Trainer::InitialWeights() {
  if (job_.model().has_initial()) {
    spdlog::info("the weights start from {}", job_.model().initial());
    return ReadInitialWeights(job_.model(), context_.data_dir, context_.model);
  }
  FloatBuffer weights(registration_.schema().total());
  context_.model.Initialize(job_.metadata().seed(), weights.span());
  return weights;
}

absl::StatusOr<bool> Trainer::RunClocks() {
  while (!Over()) {
    ASSIGN_OR_RETURN(const bool done,
                     participant_.UnlessStopped([this] { return RunClockOrRejoin(); }));
    if (!done) return true;
  }
  ASSIGN_OR_RETURN(const bool read,
                   participant_.UnlessStopped([this] { return runner_->exchange().ReadLatest(); }));
  return !read;
}

bool Trainer::Over() const {
  // In async mode, a worker without data of its own makes no exchanges.
  const bool none = registration_.length().total_clocks() > 0 && participant_.leases() == nullptr &&
                    context_.data.steps_per_epoch() == 0;
  return none || participant_.MadeAll();
}

absl::Status Trainer::RunClockOrRejoin() {
  const absl::Status status = RunClock();
  if (!absl::IsAlreadyExists(status)) return status;
  RETURN_IF_ERROR(participant_.Rejoin(status));
  return EvaluateWhenDue();
}

absl::Status Trainer::AwaitBatch() {
  while (participant_.IsOpen()) {
    const Time limit = std::chrono::steady_clock::now() + kAskAfter;
    ASSIGN_OR_RETURN(const bool waited, participant_.AwaitBatch(limit));
    if (waited) break;
    RETURN_IF_ERROR(participant_.AskWhereToStop());
  }
  return absl::OkStatus();
}

absl::Status Trainer::RunClock() {
  RETURN_IF_ERROR(participant_.AskWhereToStop());
  RETURN_IF_ERROR(AwaitBatch());
  if (Over()) return absl::OkStatus();
  // If the next exchange may not begin, its contribution need not be computed.
  if (!participant_.IsOpen()) {
    RETURN_IF_ERROR(runner_->exchange().Settle());
    return participant_.OnBegin(participant_.clock());
  }
  const ClockSpan span = participant_.NextSpan();
  ASSIGN_OR_RETURN(const ClockReport report, runner_->Run(span));
  LogLeftOut(registration_.rank(), span.clock, report);
  participant_.Advance(MetricsOf(report));
  if (Over() || participant_.NearlyMadeAll()) RETURN_IF_ERROR(runner_->exchange().Settle());
  RETURN_IF_ERROR(participant_.SaveAtCut());
  return EvaluateWhenDue();
}

absl::Status Trainer::EvaluateWhenDue() {
  // The last evaluation follows when all exchanges are done, so none is made here.
  if (evaluate_every_ == 0 || !evaluates_ || Over()) return absl::OkStatus();
  // If the clock of an evaluation was skipped, the evaluation is made at the next clock.
  if (participant_.clock() / evaluate_every_ <= evaluated_) return absl::OkStatus();
  RETURN_IF_ERROR(runner_->exchange().Settle());
  evaluated_ = participant_.clock() / evaluate_every_;
  ASSIGN_OR_RETURN(const v1::EvaluationMetrics metrics, Evaluate());
  if (job_.evaluation().has_early_stop()) return context_.session.ReportNow(metrics);
  context_.session.Report(metrics);
  return absl::OkStatus();
}

absl::StatusOr<v1::EvaluationMetrics> Trainer::Evaluate() {
  std::span<const float> weights = runner_->weights();
  if (job_.evaluation().weights() == v1::EVALUATED_WEIGHTS_AVERAGE) {
    average_.resize(weights.size());
    RETURN_IF_ERROR(
        participant_.client().Wait(participant_.client().PullAverage(average_)).status());
    weights = average_;
  }
  ASSIGN_OR_RETURN(
      v1::EvaluationMetrics metrics,
      leeway::Evaluate(context_.model, *context_.test, LabelLoss(job_.model()), weights));
  metrics.set_clock(participant_.clock());
  metrics.set_epoch(participant_.Epoch());
  spdlog::info("clock {}: test loss {:.6g}{}", participant_.clock(), metrics.test_loss(),
               metrics.has_test_accuracy()
                   ? fmt::format(", test accuracy {:.2f} %", 100 * metrics.test_accuracy())
                   : "");
  return metrics;
}

}  // namespace leeway
