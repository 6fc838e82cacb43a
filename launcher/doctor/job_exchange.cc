#include "launcher/doctor/job_exchange.h"

#include <algorithm>
#include <vector>

#include "bench/exchange_figures.h"
#include "bench/exchange_job.h"
#include "common/status.h"
#include "config/job.h"

namespace leeway {
namespace {

constexpr uint32_t kExchangeRounds = 3;
constexpr uint64_t kClocks = 1'000'000'000;

}  // namespace

v1::TrainingJob EndlessJob(const v1::TrainingJob& job, uint32_t servers, uint32_t workers) {
  v1::TrainingJob endless = job;
  endless.clear_stop();
  endless.mutable_stop()->set_clocks(kClocks);
  endless.mutable_checkpoint()->clear_every();
  endless.clear_evaluation();
  endless.mutable_servers()->set_count(servers);
  const uint32_t shards = job.servers().shards();
  if (shards > 0) endless.mutable_servers()->set_shards(std::max(shards, servers));
  endless.mutable_servers()->set_replicas(std::min(job.servers().replicas(), servers));
  endless.mutable_workers()->set_count(workers);
  return endless;
}

v1::TrainingJob IdleJob(const v1::TrainingJob& job, uint32_t servers, uint32_t workers) {
  v1::TrainingJob idle = EndlessJob(job, servers, workers);
  idle.mutable_workers()->clear_emulate();
  idle.mutable_data()->clear_assignment();
  idle.mutable_workers()->clear_on_worker_loss();
  idle.mutable_consistency()->clear_backup_workers();
  return idle;
}

absl::StatusOr<JobExchange> MeasureJobExchange(const JobExchangeOptions& options) {
  const v1::TrainingJob job = IdleJob(options.job, options.servers, options.workers);
  ASSIGN_OR_RETURN(const auto group, ExchangeJob::Start({.program_folder = options.program_folder,
                                                         .yaml = ToYaml(job),
                                                         .servers = options.servers,
                                                         .workers = options.workers,
                                                         .schema = options.schema}));
  ASSIGN_OR_RETURN(const uint64_t clocks, WarmUp(*group, options.seconds));
  std::vector<ExchangeRound> rounds;
  for (uint32_t round = 0; round < kExchangeRounds; ++round) {
    ASSIGN_OR_RETURN(ExchangeRound measured, group->Run(clocks, options.seconds));
    rounds.push_back(std::move(measured));
  }
  const double gigabytes = ExchangedGigabytes(options.schema.total(), options.workers, clocks);
  const ExchangeFigures figures = FiguresOf(rounds, gigabytes);
  return JobExchange{
      .seconds = figures.step_seconds.p50,
      .cpu_seconds = figures.cpu_seconds_per_gigabyte * gigabytes / static_cast<double>(clocks),
      .block_bytes = group->block_bytes()};
}

}  // namespace leeway
