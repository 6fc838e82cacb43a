#include "library/job_messages.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/update/factors.h"
#include "config/length.h"

namespace leeway {

JobInfo InfoFrom(const v1::RegisterWorkerReply& reply) {
  const v1::TrainingJob& job = reply.job();
  const v1::Exchange& exchange = job.exchange();
  JobInfo info;
  info.rank = reply.rank();
  info.workers = job.workers().count();
  info.exchange = exchange.has_delta()     ? JobExchange::kDelta
                  : exchange.has_elastic() ? JobExchange::kElastic
                                           : JobExchange::kGradient;
  info.total = reply.schema().total();
  info.trained = reply.schema().trained();
  info.clocks = reply.length().total_clocks() > 0 ? 0 : reply.length().clocks();
  info.steps_per_clock = reply.length().steps_per_clock();
  info.steps_per_epoch = reply.length().steps_per_epoch();
  info.first_clock = reply.length().first_clock();
  info.first_step = reply.length().first_step();
  info.seed = job.metadata().seed();
  info.batch_size = job.data().batch_size();
  info.examples = job.data().examples();
  if (job.data().assignment() == v1::ASSIGNMENT_LEASED) {
    info.batches_per_epoch = ExternalBatchesPerEpoch(job);
  }
  if (job.evaluation().has_every()) {
    info.evaluate_every = IntervalClocks(job.evaluation().every(), reply.length());
  }
  info.has_update = job.has_update();
  const v1::Schedule& schedule = job.update().schedule();
  info.has_schedule = schedule.has_step() || schedule.has_cosine() || schedule.has_warm_up();
  return info;
}

uint64_t LastVersion(const v1::RegisterWorkerReply& reply) {
  const v1::JobLength& length = reply.length();
  // Sync mode has one update a clock. Other modes have one for each contribution.
  if (reply.job().consistency().mode() == v1::CONSISTENCY_MODE_SYNC) return length.clocks();
  if (length.total_clocks() > 0) return length.total_clocks();
  return length.clocks() * reply.job().workers().count();
}

absl::StatusOr<ContributionRates> RatesFrom(std::span<const JobRate> rates, uint64_t trained) {
  if (rates.empty()) return nullptr;
  if (rates.size() > kRatesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("rates: has ", rates.size(), " parts, but at most ", kRatesMax,
                     " are allowed; join neighbouring parts that have the same factor"));
  }
  auto parts = std::make_shared<std::vector<UpdatePart>>();
  for (const JobRate& rate : rates) {
    parts->push_back({.end = rate.end, .rate = rate.skip ? 1 : rate.factor, .skip = rate.skip});
  }
  RETURN_IF_ERROR(CheckRates(*parts, trained));
  return parts;
}

v1::StepMetrics MetricsFrom(const ClockMeasures& measures, const Exchange& exchange) {
  v1::StepMetrics metrics;
  metrics.set_steps(measures.steps);
  metrics.set_examples(measures.examples);
  // A program that does not report its loss leaves loss_sum at 0.
  if (measures.examples > 0 && measures.loss_sum != 0) {
    metrics.set_train_loss(measures.loss_sum / static_cast<double>(measures.examples));
  }
  metrics.set_learning_rate(measures.learning_rate);
  metrics.set_data_seconds(measures.data_seconds);
  metrics.set_forward_seconds(measures.forward_seconds);
  metrics.set_backward_seconds(measures.backward_seconds);
  metrics.set_compute_seconds(measures.forward_seconds + measures.backward_seconds);
  metrics.set_skipped_contributions(exchange.left_out() ? 1 : 0);
  metrics.set_clipped_contributions(exchange.clipped() ? 1 : 0);
  return metrics;
}

}  // namespace leeway
