#include "bench/exchange_bench.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/base/bench_job.h"
#include "bench/exchange_figures.h"
#include "bench/exchange_job.h"
#include "client/calls/parameter_client.h"
#include "common/blocks.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr double kMemoryAllowance = 1.15;

uint64_t SlotsOf(const std::string& update) {
  return update == "adam" ? 2 : update == "momentum" ? 1 : 0;
}

std::string YamlOf(const ExchangeBenchOptions& options, Wire wire) {
  return BenchJobYaml({.update = options.update,
                       .wire = wire,
                       .contributions = options.codec,
                       .weights = options.codec,
                       .servers = options.servers,
                       .workers = options.workers,
                       .block_bytes = options.block_bytes});
}

uint64_t BoundOf(const ExchangeBenchOptions& options, uint64_t parameters, uint64_t block_bytes) {
  const BlockLayout layout = BlockLayout::ForModel(parameters, options.servers, block_bytes);
  const double versions =
      static_cast<double>(layout.ElementsOn(0) * sizeof(float) * (2 + SlotsOf(options.update)));
  const uint64_t blocks = std::min<uint64_t>(WindowFor(block_bytes), layout.BlocksOn(0));
  return static_cast<uint64_t>(kMemoryAllowance * versions) +
         options.workers * blocks * block_bytes;
}

RawLimit LimitOf(const ExchangeFigures& leeway, ExchangeFigures raw) {
  RawLimit limit;
  limit.share = Median(Ratios(leeway.rates, raw.rates));
  limit.cpu_ratio = Median(Ratios(leeway.cpu, raw.cpu));
  limit.raw = std::move(raw);
  return limit;
}

absl::StatusOr<ExchangeResult> Measure(const ExchangeBenchOptions& options, Wire wire,
                                       uint64_t parameters) {
  ASSIGN_OR_RETURN(const auto job, ExchangeJob::Start({.program_folder = options.program_folder,
                                                       .yaml = YamlOf(options, wire),
                                                       .servers = options.servers,
                                                       .workers = options.workers,
                                                       .schema = VectorSchema(parameters)}));
  ASSIGN_OR_RETURN(const uint64_t clocks, WarmUp(*job, options.seconds));
  std::unique_ptr<RawExchangeGroup> raw;
  if (options.raw) {
    const RawExchangePlan plan{.total_floats = parameters,
                               .servers = options.servers,
                               .block_floats = job->block_bytes() / sizeof(float)};
    ASSIGN_OR_RETURN(raw, RawExchangeGroup::Start(plan, wire, options.workers));
    RETURN_IF_ERROR(raw->Run(kWarmUpClocks, 0).status());
  }
  std::vector<ExchangeRound> rounds[2];
  for (uint32_t round = 0; round < options.rounds; ++round) {
    for (uint32_t turn = 0; turn < 2; ++turn) {
      const bool is_raw = (round + turn) % 2 == 1;
      if (is_raw && raw == nullptr) continue;
      ExchangeGroup& group = is_raw ? static_cast<ExchangeGroup&>(*raw) : *job;
      ASSIGN_OR_RETURN(ExchangeRound measured, group.Run(clocks, options.seconds));
      rounds[is_raw].push_back(std::move(measured));
    }
  }
  const double gigabytes = ExchangedGigabytes(parameters, options.workers, clocks);
  ExchangeResult result;
  result.parameters = parameters;
  result.wire = wire;
  result.block_bytes = job->block_bytes();
  result.leeway = FiguresOf(rounds[0], gigabytes);
  if (raw != nullptr) result.limit = LimitOf(result.leeway, FiguresOf(rounds[1], gigabytes));
  const ExchangeJob::ServerMemory memory = job->server_memory();
  result.server_peak_bytes = memory.peak_bytes;
  result.server_peers_bytes = memory.peers_bytes;
  result.server_idle_bytes = memory.idle_bytes;
  result.server_bound_bytes = BoundOf(options, parameters, result.block_bytes);
  return result;
}

}  // namespace

absl::Status BenchExchange(const ExchangeBenchOptions& options,
                           std::vector<ExchangeResult>& results) {
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
  return absl::OkStatus();
}

}  // namespace leeway
