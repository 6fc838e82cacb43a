#include "deploy/bench/exchange_bench.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/blocks.h"
#include "common/status.h"
#include "deploy/bench/exchange_job.h"
#include "deploy/launcher/format.h"
#include "deploy/launcher/table.h"

namespace leeway {
namespace {

// Blocks of a worker in flight to a server (ParameterClientOptions::window).
constexpr uint64_t kWindow = 16;
constexpr uint64_t kClocksMax = 100'000;
constexpr double kMemoryAllowance = 1.15;

uint64_t SlotsOf(const std::string& update) {
  return update == "adam" ? 2 : update == "momentum" ? 1 : 0;
}

// How many clocks take about `seconds`, from a few that were measured.
uint64_t ClocksFor(double seconds, const ExchangeRound& measured, uint64_t clocks) {
  const double step = measured.seconds / static_cast<double>(clocks);
  const double fitting = step > 0 ? seconds / step : 2;
  return static_cast<uint64_t>(std::clamp(std::round(fitting), 2.0, double{kClocksMax}));
}

ExchangeFigures FiguresOf(const std::vector<ExchangeRound>& rounds, double gigabytes) {
  ExchangeFigures figures;
  std::vector<double> steps;
  for (const ExchangeRound& round : rounds) {
    steps.insert(steps.end(), round.step_seconds.begin(), round.step_seconds.end());
    figures.rates.push_back(round.seconds > 0 ? gigabytes / round.seconds : 0);
    figures.cpu.push_back(round.cpu_seconds / gigabytes);
  }
  figures.step_seconds = PercentilesOf(steps);
  figures.gigabytes_per_second = Median(figures.rates);
  figures.cpu_seconds_per_gigabyte = Median(figures.cpu);
  return figures;
}

uint64_t BoundOf(const ExchangeBenchOptions& options, uint64_t parameters, uint64_t block_bytes) {
  const BlockLayout layout = BlockLayout::ForModel(parameters, options.servers, block_bytes);
  const double versions =
      static_cast<double>(layout.ElementsOn(0) * sizeof(float) * (2 + SlotsOf(options.update)));
  const uint64_t blocks = std::min<uint64_t>(kWindow, layout.BlocksOn(0));
  return static_cast<uint64_t>(kMemoryAllowance * versions) +
         options.workers * blocks * block_bytes;
}

absl::StatusOr<ExchangeResult> Measure(const ExchangeBenchOptions& options, Wire wire,
                                       uint64_t parameters) {
  constexpr uint64_t kWarmUpClocks = 2;
  ASSIGN_OR_RETURN(const auto job, ExchangeJob::Start(options, wire, parameters));
  RETURN_IF_ERROR(job->Run(kWarmUpClocks).status());
  ASSIGN_OR_RETURN(const ExchangeRound first, job->Run(kWarmUpClocks));
  const uint64_t clocks = ClocksFor(options.seconds, first, kWarmUpClocks);
  std::unique_ptr<RawExchangeGroup> raw;
  if (options.raw) {
    ASSIGN_OR_RETURN(raw, RawExchangeGroup::Start(options, wire, parameters, job->block_bytes()));
    RETURN_IF_ERROR(raw->Run(kWarmUpClocks).status());
  }
  std::vector<ExchangeRound> rounds[2];
  for (uint32_t round = 0; round < options.rounds; ++round) {
    for (uint32_t turn = 0; turn < 2; ++turn) {
      const bool is_raw = (round + turn) % 2 == 1;
      if (is_raw && raw == nullptr) continue;
      ExchangeGroup& group = is_raw ? static_cast<ExchangeGroup&>(*raw) : *job;
      ASSIGN_OR_RETURN(ExchangeRound measured, group.Run(clocks));
      rounds[is_raw].push_back(std::move(measured));
    }
  }
  // Up and down, of all workers, in a round.
  const double gigabytes = 1e-9 * 2 * sizeof(float) * static_cast<double>(parameters) *
                           options.workers * static_cast<double>(clocks);
  ExchangeResult result{.parameters = parameters, .wire = wire};
  result.block_bytes = job->block_bytes();
  result.leeway = FiguresOf(rounds[0], gigabytes);
  result.raw = FiguresOf(rounds[1], gigabytes);
  result.share = Median(Ratios(result.leeway.rates, result.raw.rates));
  result.cpu_ratio = Median(Ratios(result.leeway.cpu, result.raw.cpu));
  const ExchangeJob::ServerMemory memory = job->server_memory();
  result.server_peak_bytes = memory.peak_bytes;
  result.server_peers_bytes = memory.peers_bytes;
  result.server_idle_bytes = memory.idle_bytes;
  result.server_bound_bytes = BoundOf(options, parameters, result.block_bytes);
  return result;
}

std::string Milliseconds(double seconds) { return Fixed(1e3 * seconds, 2); }

Json SideJson(const ExchangeFigures& figures) {
  const Percentiles& step = figures.step_seconds;
  return {{"step_seconds",
           {{"p50", step.p50}, {"p90", step.p90}, {"p99", step.p99}, {"max", step.max}}},
          {"gigabytes_per_second", figures.gigabytes_per_second},
          {"cpu_seconds_per_gigabyte", figures.cpu_seconds_per_gigabyte},
          {"rounds_gigabytes_per_second", figures.rates}};
}

}  // namespace

absl::StatusOr<std::vector<ExchangeResult>> BenchExchange(const ExchangeBenchOptions& options) {
  std::vector<ExchangeResult> results;
  for (const uint64_t parameters : options.parameters) {
    for (const Wire wire : options.wires) {
      const std::string name =
          absl::StrCat("exchange of ", parameters, " parameters over ", NameOf(wire));
      options.progress(name);
      auto result = Measure(options, wire, parameters);
      if (!result.ok()) return Annotate(result.status(), name);
      results.push_back(*std::move(result));
    }
  }
  return results;
}

std::string ExchangeTable(const ExchangeBenchOptions& options,
                          const std::vector<ExchangeResult>& results) {
  Table table({"parameters", "transport", "block", "step p50 ms", "p90", "p99", "GB/s",
               "raw p50 ms", "raw GB/s", "share", "CPU s/GB", "raw", "ratio", "server peak",
               "of it workers'", "idle", "bound"},
              2);
  for (const ExchangeResult& row : results) {
    table.Add({Thousands(row.parameters), NameOf(row.wire), Bytes(row.block_bytes),
               Milliseconds(row.leeway.step_seconds.p50), Milliseconds(row.leeway.step_seconds.p90),
               Milliseconds(row.leeway.step_seconds.p99), Fixed(row.leeway.gigabytes_per_second, 2),
               Milliseconds(row.raw.step_seconds.p50), Fixed(row.raw.gigabytes_per_second, 2),
               Fixed(row.share, 2), Fixed(row.leeway.cpu_seconds_per_gigabyte, 2),
               Fixed(row.raw.cpu_seconds_per_gigabyte, 2), Fixed(row.cpu_ratio, 2),
               Bytes(row.server_peak_bytes), Bytes(row.server_peers_bytes),
               Bytes(row.server_idle_bytes), Bytes(row.server_bound_bytes)});
  }
  return absl::StrCat(
      "Sync exchange of the whole vector, ", options.servers, " servers, ", options.workers,
      " workers, update ", options.update,
      "; GB = 1e9 bytes, contributions and weights of all workers.\nRaw: the same "
      "bytes through bare sockets, without arithmetic. Bound: parameters x (2 + "
      "slots) x 1.15 + what is in flight;\nidle: the server before it had a model; workers': "
      "what of the peak is mapped from their shared memory.\n",
      table.ToString());
}

Json ExchangeJson(const std::vector<ExchangeResult>& results) {
  Json rows = Json::array();
  for (const ExchangeResult& row : results) {
    rows.push_back({{"parameters", row.parameters},
                    {"transport", NameOf(row.wire)},
                    {"block_bytes", row.block_bytes},
                    {"leeway", SideJson(row.leeway)},
                    {"raw", SideJson(row.raw)},
                    {"share", row.share},
                    {"cpu_ratio", row.cpu_ratio},
                    {"server_peak_bytes", row.server_peak_bytes},
                    {"server_peers_bytes", row.server_peers_bytes},
                    {"server_idle_bytes", row.server_idle_bytes},
                    {"server_bound_bytes", row.server_bound_bytes}});
  }
  return rows;
}

}  // namespace leeway
