#include "launcher/doctor/doctor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bench/raw/raw_socket.h"
#include "common/blocks.h"
#include "common/clock.h"
#include "common/codec/choose.h"
#include "common/status.h"
#include "config/length.h"
#include "config/shards.h"
#include "exchange/gradient_guard.h"
#include "launcher/doctor/job_exchange.h"
#include "launcher/doctor/traffic.h"

namespace leeway {
namespace {

// A job with longer clocks is not rehearsed, because it would take minutes.
constexpr double kClockSecondsMax = 10;
// A rehearsal takes kRehearsalTimes as long as another measurement, and at least kRehearsalClocks
// clocks, because the coordinator hears of clocks only every half second.
constexpr double kRehearsalTimes = 4;
constexpr double kRehearsalClocks = 8;

// Returns the job's rule by its name in `leeway bench update`.
std::string RuleOf(const v1::TrainingJob& job) {
  if (job.exchange().has_elastic()) return "elastic";
  const v1::Update& update = job.update();
  if (update.has_adagrad()) return "adagrad";
  if (!update.has_sgd()) return "adam";
  return update.sgd().momentum() > 0 ? "momentum" : "sgd";
}

BlockLayout LayoutOf(const v1::TrainingJob& job, const JobDiagnosis& result) {
  return BlockLayout::ForModel(result.compute.schema.total(), ShardsOf(job),
                               job.servers().block_bytes());
}

// Returns the compressed bytes as a share of the floats' bytes, in the direction with more traffic.
absl::StatusOr<double> TravelShare(const v1::TrainingJob& job, const JobDiagnosis& result) {
  ASSIGN_OR_RETURN(const PlannedTraffic traffic,
                   TrafficOf(job, result.compute.schema, LayoutOf(job, result)));
  const auto floats = static_cast<double>(result.compute.schema.total() * sizeof(float));
  return static_cast<double>(std::max(traffic.sent, traffic.received)) / floats;
}

// Measures exchanges between the job's number of processes on this machine, or fewer if they do not
// fit.
absl::Status MeasureExchange(const DoctorOptions& options, const HostRates& host,
                             JobDiagnosis& result) {
  const v1::TrainingJob& job = *options.job;
  const uint64_t model_bytes = result.compute.schema.total() * sizeof(float);
  result.servers_measured = ProcessesToMeasure(
      job.servers().count(), model_bytes / job.servers().count(), host.memory_bytes);
  ASSIGN_OR_RETURN(const JobExchange exchange,
                   MeasureJobExchange({.job = job,
                                       .schema = result.compute.schema,
                                       .servers = result.servers_measured,
                                       .workers = result.workers_measured,
                                       .program_folder = options.program_folder,
                                       .seconds = options.seconds}));
  // The bytes of all workers go through the same memory and processors.
  const double scale = static_cast<double>(job.workers().count()) / result.workers_measured;
  ASSIGN_OR_RETURN(result.travel_share, TravelShare(job, result));
  result.parts.exchange = scale * exchange.seconds;
  result.parts.exchange_cpu = scale * exchange.cpu_seconds;
  return absl::OkStatus();
}

// Returns how many servers receive a worker's data: all those that have a copy of a block.
double CopiesServed(const v1::TrainingJob& job) { return std::max(job.servers().replicas(), 1u); }

// Estimates the exchange across a network by the measured rates. Every worker and every server has
// a machine and a link of its own, like the measured one.
absl::Status EstimateExchange(const v1::TrainingJob& wanted, const Diagnosis& diagnosis,
                              JobDiagnosis& result) {
  const double link = 0.5e9 * diagnosis.peer->both_gigabytes_per_second;
  v1::TrainingJob job = wanted;
  if (HasAuto(job.compression())) {
    ResolveAuto(ChooseCodec(link, MeasureAutoCodecs()), *job.mutable_compression());
  }
  ASSIGN_OR_RETURN(result.travel_share, TravelShare(job, result));
  const double bytes = 4.0 * static_cast<double>(result.compute.schema.total());
  const auto rate = diagnosis.host.updates.find(RuleOf(job));
  const double update = rate == diagnosis.host.updates.end() ? 0 : 1e9 * rate->second;
  const double crowd =
      std::max(1.0, CopiesServed(job) * job.workers().count() / job.servers().count());
  result.parts.exchange =
      result.travel_share * bytes * crowd / std::max(link, 1.0) +
      bytes * job.workers().count() / job.servers().count() / std::max(update, 1.0) +
      diagnosis.peer->round_trip_seconds;
  result.parts.processors = 0;
  return absl::OkStatus();
}

// Returns a worker's rate to one server in each direction, which decides how many servers are
// useful.
double ServerRate(const Diagnosis& diagnosis) {
  if (diagnosis.peer.has_value()) return 0.5e9 * diagnosis.peer->both_gigabytes_per_second;
  double best = 0;
  for (const BlockRate& rate : diagnosis.host.exchange) {
    best = std::max(best, rate.gigabytes_per_second);
  }
  return 0.5e9 * best;
}

// Returns the part of a clock's compute that can hide its exchange.
double HidesBehind(const v1::Exchange& exchange, double clock, double step) {
  if (IsSpread(exchange)) return clock;
  // If the worker checks the whole gradient before it sends a part, nothing leaves during the
  // compute.
  return exchange.has_gradient() && !GuardsGradients(exchange) ? step : 0;
}

// Returns the parts of the job that the estimate leaves out.
std::vector<std::string> LeftOut(const v1::TrainingJob& job) {
  std::vector<std::string> left_out;
  if (job.workers().emulate().slow_size() > 0) left_out.push_back("workers.emulate.slow");
  if (!job.exchange().has_gradient()) left_out.push_back("the workers' own optimizer");
  return left_out;
}

// Returns the parts of one clock, except the exchange.
StepParts ComputeParts(const v1::TrainingJob& job, const JobDiagnosis& result,
                       const HostRates& host) {
  const ComputeFigures& compute = result.compute;
  const auto steps = static_cast<double>(result.steps_per_clock);
  const double padded = 1e-3 * job.workers().emulate().step_milliseconds();
  const auto parameters = static_cast<double>(std::max<uint64_t>(compute.schema.total(), 1));
  // If there are more workers than processors, the workers slow each other down. But while one
  // worker waits for its exchange, another worker computes.
  const double turns =
      std::max(1.0, static_cast<double>(result.workers_measured) / host.processors);
  const double alone = compute.step_seconds / turns;
  const double stretch =
      compute.step_cpu_seconds > 0 ? std::max(1.0, alone / compute.step_cpu_seconds) : 1.0;
  const double step = std::max(alone, padded);
  const bool spread = IsSpread(job.exchange());
  return {.compute = steps * step,
          .compute_cpu = steps * compute.step_cpu_seconds,
          // In a spread exchange, only blocks that leave after the last step are not hidden.
          .first_layer_share =
              spread ? 1 / steps : static_cast<double>(compute.first_layer_parameters) / parameters,
          .hides_behind = HidesBehind(job.exchange(), steps * step, step),
          .workers = job.workers().count(),
          .turns = turns,
          .processors = host.processors,
          .stretch = stretch};
}

// Computes which servers and blocks the job needs, once the parts of its clocks are known.
void Advise(const v1::TrainingJob& job, const Diagnosis& so_far, JobDiagnosis& result) {
  const StepParts& parts = result.parts;
  const uint64_t parameters = result.compute.schema.total();
  const uint64_t model_bytes = parameters * sizeof(float);
  result.servers = job.servers().count();
  result.block_bytes = LayoutOf(job, result).block_elements() * sizeof(float);
  const uint32_t most = so_far.peer.has_value() ? parts.workers : so_far.host.processors;
  const double travels = result.travel_share * CopiesServed(job) * static_cast<double>(model_bytes);
  const ServerChoice choice =
      ChooseServers(travels, parts.workers, ServerRate(so_far), parts.compute, most);
  result.servers_wanted = choice.servers;
  result.servers_enough = choice.enough;
  result.block_bytes_wanted =
      ChooseBlockBytes(so_far.host.exchange, model_bytes, result.servers_wanted);
  // The key servers.block_bytes only sets a maximum. If the blocks are smaller, the model is too
  // small for larger blocks.
  const bool whole = result.block_bytes < job.servers().block_bytes();
  if (whole) result.block_bytes_wanted = std::min(result.block_bytes_wanted, result.block_bytes);
}

// Tries the job itself, if all its processes can be started. If the trial fails, the estimate
// remains.
void TryTheJob(const DoctorOptions& options, JobDiagnosis& result) {
  const v1::TrainingJob& job = *options.job;
  const bool all = result.workers_measured == job.workers().count() &&
                   result.servers_measured == job.servers().count();
  if (!all || result.estimate.seconds > kClockSecondsMax) return;
  const double seconds =
      std::max(kRehearsalTimes * options.seconds, kRehearsalClocks * result.estimate.seconds);
  options.progress("the job itself");
  auto rehearsal = Rehearse({.job = job,
                             .data_dir = options.data_dir,
                             .program_folder = options.program_folder,
                             .seconds = seconds});
  if (rehearsal.ok()) {
    result.rehearsal = *std::move(rehearsal);
  } else {
    result.rehearsal_error = std::string(rehearsal.status().message());
  }
}

// Sets the expected figures from the rehearsal, or else from the estimate.
void Conclude(const v1::TrainingJob& job, JobDiagnosis& result) {
  const StepParts& parts = result.parts;
  result.clock_seconds = result.estimate.seconds;
  result.hidden_seconds = result.estimate.hidden_seconds;
  if (result.rehearsal.has_value()) {
    result.clock_seconds = result.rehearsal->clock_seconds;
    result.hidden_seconds = HiddenSeconds(parts, result.rehearsal->hidden_share);
  }
  if (result.clock_seconds <= 0) return;
  const double examples =
      static_cast<double>(result.steps_per_clock) * job.data().batch_size() * job.workers().count();
  result.examples_per_second = result.rehearsal.has_value() ? result.rehearsal->examples_per_second
                                                            : examples / result.clock_seconds;
}

absl::StatusOr<JobDiagnosis> DiagnoseJob(const DoctorOptions& options, const Diagnosis& so_far) {
  const v1::TrainingJob& job = *options.job;
  JobDiagnosis result;
  // Workers on separate machines do not compete with each other.
  const uint32_t together = so_far.peer.has_value() ? 1 : job.workers().count();
  options.progress("the model's steps");
  ASSIGN_OR_RETURN(result.compute, MeasureCompute(job, options.data_dir, together,
                                                  so_far.host.memory_bytes, options.seconds));
  result.workers_measured = result.compute.workers;
  result.steps_per_clock = StepsPerClock(job);
  result.parts = ComputeParts(job, result, so_far.host);
  result.left_out = LeftOut(job);
  if (so_far.peer.has_value()) {
    RETURN_IF_ERROR(EstimateExchange(job, so_far, result));
  } else {
    options.progress("exchanges of the job");
    RETURN_IF_ERROR(MeasureExchange(options, so_far.host, result));
  }
  result.estimate = EstimateStep(result.parts);
  if (!so_far.peer.has_value()) TryTheJob(options, result);
  Advise(job, so_far, result);
  Conclude(job, result);
  return result;
}

// Measures the network to the peer in a separate process. The measurement starts threads, and this
// process must not have threads, because it forks later.
absl::StatusOr<PeerRates> PeerOf(const DoctorOptions& options) {
  ASSIGN_OR_RETURN(const auto process, BenchProcess::Start("the network", [&] {
                     const auto handle = [&options](const Json&) -> absl::StatusOr<Json> {
                       ASSIGN_OR_RETURN(const PeerRates rates,
                                        MeasurePeer(options.peer, options.seconds));
                       return PeerRatesJson(rates);
                     };
                     return BenchService{.hello = Json::object(), .handle = handle};
                   }));
  ASSIGN_OR_RETURN(const Json answer,
                   process->Call({{"measure", true}}, AnswerWithin(options.seconds)));
  return PeerRatesFrom(answer);
}

}  // namespace

absl::Status Diagnose(const DoctorOptions& options, std::optional<Diagnosis>& diagnosis) {
  if (!options.peer.empty()) {
    // Checks that the peer listens before anything else is measured.
    RETURN_IF_ERROR(Annotate(RawSocket::Connect(options.peer).status(), "--peer"));
  }
  options.progress("memory, updates and exchanges of this machine");
  ASSIGN_OR_RETURN(HostRates host, MeasureHost(options.seconds));
  diagnosis.emplace().host = std::move(host);
  diagnosis->gpus = FindGpus(options.gpus);
  if (!options.peer.empty()) {
    options.progress("the network to the peer");
    ASSIGN_OR_RETURN(diagnosis->peer, PeerOf(options));
  }
  if (options.job.has_value()) {
    ASSIGN_OR_RETURN(diagnosis->job, DiagnoseJob(options, *diagnosis));
  }
  return absl::OkStatus();
}

}  // namespace leeway
