#include "worker/trainer.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "common/buffer.h"
#include "common/counted.h"
#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "config/length.h"
#include "exchange/carriers/make_carrier.h"
#include "worker/evaluate.h"
#include "worker/formats/model_file.h"

namespace leeway {
namespace {

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
      participant_(context.registration, context.session, context.contributions,
                   context.transport) {}

absl::StatusOr<v1::LeaveReason> Trainer::Run() {
  RETURN_IF_ERROR(Open());
  RETURN_IF_ERROR(Attach());
  const absl::StatusOr<bool> ran = RunClocks();
  participant_.ReportDone();
  ASSIGN_OR_RETURN(const bool stopped, ran);
  if (!stopped && evaluates_) {
    ASSIGN_OR_RETURN(const v1::EvaluationMetrics metrics, Evaluate());
    context_.session.Report(metrics);
  }
  RETURN_IF_ERROR(loop_->SaveState());
  return stopped ? v1::LEAVE_STOPPED : v1::LEAVE_FINISHED;
}

absl::Status Trainer::Open() {
  RETURN_IF_ERROR(participant_.Open());
  // In async mode, a worker without data of its own makes no exchanges.
  const bool idle = registration_.length().total_clocks() > 0 && participant_.leases() == nullptr &&
                    context_.data.steps_per_epoch() == 0;
  loop_ = std::make_unique<ClockLoop>(participant_, idle);
  steps_ = std::make_unique<LocalSteps>(job_, registration_.rank(), registration_.length(),
                                        context_.data, participant_.leases(), context_.model,
                                        context_.sleep);
  return OpenRunner();
}

absl::Status Trainer::OpenRunner() {
  carrier_ = MakeCarrier(participant_, context_.holder);
  auto made = MakeClockRunner(
      {.job = job_,
       .schema = registration_.schema(),
       .length = registration_.length(),
       .rank = registration_.rank(),
       .carrier = *carrier_,
       .backend = context_.model.backend(),
       .steps = *steps_,
       .listener = *loop_,
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
  RETURN_IF_ERROR(loop_->Attach(runner_->exchange(), [this] { return InitialWeights(); }));
  // The previous life may have ended before it reported the evaluation at this clock, and
  // early_stop needs every evaluation. So this life makes the evaluation, perhaps again.
  const uint64_t clock = loop_->clock();
  const bool again = job_.evaluation().has_early_stop() && clock > 0;
  if (evaluate_every_ > 0) evaluated_ = (clock - (again ? 1 : 0)) / evaluate_every_;
  return absl::OkStatus();
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
  while (true) {
    ASSIGN_OR_RETURN(const ClockLoop::Next next, loop_->Begin(Time::max()));
    if (next == ClockLoop::Next::kFinished) return false;
    if (next == ClockLoop::Next::kStopped) return true;
    const absl::Status status = next == ClockLoop::Next::kClock ? RunClock() : EvaluateWhenDue();
    if (!status.ok()) RETURN_IF_ERROR(loop_->BreakOff(status));
  }
}

absl::Status Trainer::RunClock() {
  const ClockSpan span = loop_->NextSpan();
  ASSIGN_OR_RETURN(const ClockReport report, runner_->Run(span));
  LogLeftOut(registration_.rank(), span.clock, report);
  loop_->End(MetricsOf(report));
  RETURN_IF_ERROR(loop_->SaveAtCut());
  return EvaluateWhenDue();
}

absl::Status Trainer::EvaluateWhenDue() {
  if (evaluate_every_ == 0 || !evaluates_) return absl::OkStatus();
  // If the worker skipped the clock of an evaluation, it evaluates at the next clock.
  if (loop_->clock() / evaluate_every_ <= evaluated_) return absl::OkStatus();
  RETURN_IF_ERROR(runner_->exchange().Settle());
  // The worker evaluates after the last exchange anyway, so it does not evaluate here.
  if (loop_->MadeAll()) return absl::OkStatus();
  evaluated_ = loop_->clock() / evaluate_every_;
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
  metrics.set_clock(loop_->clock());
  metrics.set_epoch(loop_->Epoch());
  spdlog::info("clock {}: test loss {:.6g}{}", loop_->clock(), metrics.test_loss(),
               metrics.has_test_accuracy()
                   ? fmt::format(", test accuracy {:.2f} %", 100 * metrics.test_accuracy())
                   : "");
  return metrics;
}

}  // namespace leeway
