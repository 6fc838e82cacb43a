#include "deploy/bench/doctor.h"

#include <algorithm>

#include "common/blocks.h"
#include "common/status.h"
#include "config/length.h"
#include "deploy/bench/exchange_bench.h"

namespace leeway {
namespace {

constexpr uint32_t kProbesMax = 64;

// What the exchange benchmark calls an update that keeps as much.
std::string UpdateName(const v1::TrainingJob& job) {
  const v1::Update& update = job.update();
  if (!update.has_sgd()) return job.exchange().has_elastic() ? "sgd" : "adam";
  return update.sgd().momentum() > 0 ? "momentum" : "sgd";
}

Wire WireOf(v1::TransportType type) {
  switch (type) {
    case v1::TRANSPORT_TYPE_TCP:
      return Wire::kTcp;
    case v1::TRANSPORT_TYPE_UNIX:
      return Wire::kUnix;
    case v1::TRANSPORT_TYPE_SHM:
      return Wire::kShm;
    default:
      return Wire::kAuto;
  }
}

// Exchanges of the job's size between as many processes as it has, on this machine.
absl::Status MeasureExchange(const DoctorOptions& options, uint64_t parameters, StepParts& parts) {
  const v1::TrainingJob& job = *options.job;
  ExchangeBenchOptions bench;
  bench.servers = job.servers().count();
  bench.workers = job.workers().count();
  bench.parameters = {parameters};
  bench.wires = {WireOf(job.transport().type())};
  bench.update = UpdateName(job);
  bench.block_bytes = job.servers().block_bytes();
  bench.rounds = 3;
  bench.seconds = options.seconds;
  bench.raw = false;
  bench.program_folder = options.program_folder;
  ASSIGN_OR_RETURN(const std::vector<ExchangeResult> results, BenchExchange(bench));
  const ExchangeFigures& figures = results[0].leeway;
  const double gigabytes =
      1e-9 * 2 * sizeof(float) * static_cast<double>(parameters) * bench.workers;
  parts.exchange = figures.step_seconds.p50;
  parts.exchange_cpu = figures.cpu_seconds_per_gigabyte * gigabytes;
  return absl::OkStatus();
}

// Across a network, by its rates: every worker and every server has a machine and a link of its
// own, like the one that was measured.
void EstimateExchange(const v1::TrainingJob& job, uint64_t parameters, const Diagnosis& diagnosis,
                      StepParts& parts) {
  const double bytes = 4.0 * static_cast<double>(parameters);
  const double link = 0.5e9 * diagnosis.peer->both_gigabytes_per_second;
  const double update = 1e9 * (UpdateName(job) == "adam" ? diagnosis.host.adam_gigabytes_per_second
                                                         : diagnosis.host.sgd_gigabytes_per_second);
  const double crowd =
      std::max(1.0, static_cast<double>(job.workers().count()) / job.servers().count());
  parts.exchange = bytes * crowd / std::max(link, 1.0) +
                   bytes * job.workers().count() / job.servers().count() / std::max(update, 1.0) +
                   diagnosis.peer->round_trip_seconds;
  parts.processors = 0;
}

// A worker's rate to one server, in each direction: what says how many servers are worth having.
double ServerRate(const Diagnosis& diagnosis) {
  if (diagnosis.peer.has_value()) return 0.5e9 * diagnosis.peer->both_gigabytes_per_second;
  double best = 0;
  for (const BlockRate& rate : diagnosis.host.exchange) {
    best = std::max(best, rate.gigabytes_per_second);
  }
  return 0.5e9 * best;
}

// What one clock is made of, but for the exchange; `together` workers were measured at once.
StepParts ComputeParts(const v1::TrainingJob& job, const ComputeFigures& compute, uint32_t together,
                       double steps, const HostRates& host) {
  const double padded = 1e-3 * job.workers().emulate().step_milliseconds();
  const auto parameters = static_cast<double>(std::max<uint64_t>(compute.parameters, 1));
  // Of more workers than processors each is slowed by the others; where one waits for its exchange,
  // another computes.
  const double turns = std::max(1.0, static_cast<double>(together) / host.processors);
  const double alone = compute.step_seconds / turns;
  const double stretch =
      compute.step_cpu_seconds > 0 ? std::max(1.0, alone / compute.step_cpu_seconds) : 1.0;
  return {.compute = steps * std::max(alone, padded),
          .compute_cpu = steps * compute.step_cpu_seconds,
          .first_layer_share = static_cast<double>(compute.first_layer_parameters) / parameters,
          .overlapped = job.exchange().has_gradient(),
          .workers = job.workers().count(),
          .processors = host.processors,
          .stretch = stretch};
}

// What the job wants, once it is known what its clocks are made of.
void Advise(const v1::TrainingJob& job, const Diagnosis& so_far, JobDiagnosis& result) {
  const StepParts& parts = result.parts;
  const uint64_t model_bytes = result.compute.parameters * sizeof(float);
  result.servers = job.servers().count();
  result.block_bytes =
      BlockLayout::ForModel(result.compute.parameters, result.servers, job.servers().block_bytes())
          .block_elements() *
      sizeof(float);
  const uint32_t most = so_far.peer.has_value() ? parts.workers : so_far.host.processors;
  result.servers_wanted =
      ChooseServers(model_bytes, parts.workers, ServerRate(so_far), parts.compute, most);
  result.block_bytes_wanted =
      ChooseBlockBytes(so_far.host.exchange, model_bytes, result.servers_wanted);
}

absl::StatusOr<JobDiagnosis> DiagnoseJob(const DoctorOptions& options, const Diagnosis& so_far) {
  const v1::TrainingJob& job = *options.job;
  JobDiagnosis result;
  // Workers of other machines do not compete with each other.
  const uint32_t together =
      so_far.peer.has_value() ? 1 : std::min(job.workers().count(), kProbesMax);
  options.progress("the model's steps");
  ASSIGN_OR_RETURN(result.compute,
                   MeasureCompute(job, options.data_dir, together, options.seconds));
  result.steps_per_clock = std::max<uint64_t>(StepsPerClock(job), 1);
  const auto steps = static_cast<double>(result.steps_per_clock);
  result.parts = ComputeParts(job, result.compute, together, steps, so_far.host);
  if (so_far.peer.has_value()) {
    EstimateExchange(job, result.compute.parameters, so_far, result.parts);
  } else {
    options.progress("exchanges of the job's size");
    RETURN_IF_ERROR(MeasureExchange(options, result.compute.parameters, result.parts));
  }
  result.estimate = EstimateStep(result.parts);
  Advise(job, so_far, result);
  if (result.estimate.seconds > 0) {
    const double examples = steps * job.data().batch_size() * job.workers().count();
    result.examples_per_second = examples / result.estimate.seconds;
  }
  return result;
}

}  // namespace

absl::StatusOr<Diagnosis> Diagnose(const DoctorOptions& options) {
  Diagnosis diagnosis;
  options.progress("memory, updates and exchanges of this machine");
  ASSIGN_OR_RETURN(diagnosis.host, MeasureHost(options.seconds));
  if (!options.peer.empty()) {
    options.progress("the network to the peer");
    ASSIGN_OR_RETURN(diagnosis.peer, MeasurePeer(options.peer, options.seconds));
  }
  if (options.job.has_value()) {
    ASSIGN_OR_RETURN(diagnosis.job, DiagnoseJob(options, diagnosis));
  }
  return diagnosis;
}

}  // namespace leeway
