#include "bench/transport_bench.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "bench/base/statistics.h"
#include "bench/bench_server.h"
#include "bench/ping.h"
#include "bench/raw/cipher_rate.h"
#include "client/calls/parameter_client.h"
#include "common/status.h"
#include "common/text/format.h"

namespace leeway {
namespace {

constexpr uint64_t kWorkingSetBytes = 128 << 20;
constexpr uint32_t kManyInFlight = 64;

double TravelShare(const std::vector<TransferRound>& rounds, const TransferPlan& plan) {
  double travelled = 0;
  double floats = 0;
  for (const TransferRound& round : rounds) {
    travelled += static_cast<double>(round.travelled_bytes);
    floats += static_cast<double>(round.messages * plan.bytes_moved());
  }
  return floats > 0 ? travelled / floats : 0;
}

absl::StatusOr<TransferResult> MeasureTransfer(Wire wire, const std::string& codec,
                                               const TransferPlan& plan,
                                               const RoundOptions& options, const KeyFolder* keys) {
  ASSIGN_OR_RETURN(const auto leeway, BenchPair::Leeway(wire, codec, plan, keys));
  ASSIGN_OR_RETURN(const auto raw, keys == nullptr ? BenchPair::Raw(wire, plan)
                                                   : BenchPair::Leeway(wire, codec, plan));
  ASSIGN_OR_RETURN(const auto rounds, RunInterleaved({leeway.get(), raw.get()}, options));
  TransferResult result;
  result.plan = plan;
  result.wire = wire;
  result.codec = codec;
  result.reply_codec = ReplyCodec(codec);
  result.travel_share = TravelShare(rounds[0], plan);
  result.leeway = FiguresOf(rounds[0], plan.bytes_moved());
  result.raw = FiguresOf(rounds[1], plan.bytes_moved());
  result.share = Median(Ratios(result.leeway.rates, result.raw.rates));
  result.cpu_ratio = Median(Ratios(result.leeway.cpu, result.raw.cpu));
  result.server_peak_bytes = leeway->server_peak_bytes();
  result.parameter_bytes = plan.total_bytes();
  result.in_flight_bytes = plan.message_bytes * plan.window;
  return result;
}

// How much is in flight: the name for the table, and the numbers for the plan.
struct Load {
  const char* name;
  uint32_t window;
  uint32_t call_blocks;
  uint32_t open_calls;
};
constexpr Load kLoads[] = {{"1 call", 1, 1, 1},
                           {"64 calls", kManyInFlight, 1, kManyInFlight},
                           {"a call of 64 blocks", kManyInFlight, kManyInFlight, 2}};

absl::StatusOr<ExchangeRateResult> MeasureExchanges(Wire wire, const Load& load,
                                                    const RoundOptions& options) {
  const TransferPlan plan{.method = TransferMethod::kPushPull,
                          .message_bytes = kPingBytes,
                          .blocks = 2 * kManyInFlight,
                          .window = load.window,
                          .call_blocks = load.call_blocks,
                          .open_calls = load.open_calls};
  ASSIGN_OR_RETURN(const auto leeway, BenchPair::Leeway(wire, "none", plan));
  ASSIGN_OR_RETURN(const auto ping, BenchPair::Ping(wire == Wire::kTcp ? Wire::kTcp : Wire::kUnix));
  ASSIGN_OR_RETURN(const auto rounds, RunInterleaved({leeway.get(), ping.get()}, options));
  ExchangeRateResult result{.wire = wire,
                            .in_flight = load.name,
                            .leeway = FiguresOf(rounds[0], plan.bytes_moved()),
                            .ping = FiguresOf(rounds[1], plan.bytes_moved())};
  result.ratio = Median(Ratios(result.leeway.rates, result.ping.rates));
  return result;
}

std::string InWords(const TransferResult& row) {
  return absl::StrCat(Fixed(row.leeway.gigabytes_per_second, 2), " GB/s, raw ",
                      Fixed(row.raw.gigabytes_per_second, 2), ", share ", Fixed(row.share, 2));
}

std::string InWords(const ExchangeRateResult& row) {
  return absl::StrCat(Rate(row.leeway.messages_per_second), " a second, bare gRPC ",
                      Rate(row.ping.messages_per_second), ", ratio ", Fixed(row.ratio, 2));
}

absl::Status CheckCodecs(const TransportBenchOptions& options) {
  const auto& methods = options.methods;
  const bool pulls =
      std::find(methods.begin(), methods.end(), TransferMethod::kPull) != methods.end();
  if (!options.transfers || !pulls) return absl::OkStatus();
  for (const std::string& codec : options.codecs) {
    if (ReplyCodec(codec) == codec) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", codec,
                     ", method pull: the benchmark's server answers a pull in float32, so the "
                     "codec would not be measured; use push or push_pull"));
  }
  return absl::OkStatus();
}

absl::Status AddTransfers(const TransportBenchOptions& options, Wire wire, const KeyFolder* keys,
                          std::vector<TransferResult>& results) {
  for (const TransferMethod method : options.methods) {
    for (const uint64_t size : options.sizes) {
      for (const std::string& codec : options.codecs) {
        const std::string name = absl::StrCat(NameOf(method), " of ", size >> 10, " KiB over ",
                                              NameOf(wire), ", codec ", codec);
        options.progress(name);
        auto measured = MeasureTransfer(wire, codec, PlanFor(method, size), options.rounds, keys);
        if (!measured.ok()) return Annotate(measured.status(), name);
        options.measured(absl::StrCat(name, ": ", InWords(*measured)));
        results.push_back(*std::move(measured));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status AddExchanges(const TransportBenchOptions& options, Wire wire,
                          std::vector<ExchangeRateResult>& results) {
  for (const Load& load : kLoads) {
    const std::string name =
        absl::StrCat("exchanges of 4 KiB over ", NameOf(wire), ", ", load.name);
    options.progress(name);
    auto measured = MeasureExchanges(wire, load, options.rounds);
    if (!measured.ok()) return Annotate(measured.status(), name);
    options.measured(absl::StrCat(name, ": ", InWords(*measured)));
    results.push_back(*std::move(measured));
  }
  return absl::OkStatus();
}

}  // namespace

TransferPlan PlanFor(TransferMethod method, uint64_t block_bytes) {
  TransferPlan plan;
  plan.method = method;
  plan.message_bytes = block_bytes;
  const auto fitting = static_cast<uint32_t>(kWorkingSetBytes / block_bytes);
  // The plan has two calls of half the blocks each. While the client waits for one call, the other
  // keeps the wire busy.
  plan.blocks = std::clamp<uint32_t>(fitting, 4, block_bytes < (1 << 20) ? 64 : 16) & ~1u;
  plan.call_blocks = plan.blocks / 2;
  plan.open_calls = 2;
  plan.window = std::min(WindowFor(block_bytes), plan.blocks);
  return plan;
}

absl::Status BenchTransport(const TransportBenchOptions& options, TransportBenchResult& result) {
  RETURN_IF_ERROR(CheckCodecs(options));
  std::unique_ptr<KeyFolder> keys;
  if (options.tls) {
    ASSIGN_OR_RETURN(keys, KeyFolder::Make());
    result.tls = true;
    result.cipher_rate = CipherRate();
  }
  for (const Wire wire : options.wires) {
    if (options.transfers) {
      RETURN_IF_ERROR(AddTransfers(options, wire, keys.get(), result.transfers));
    }
    if (options.exchanges) RETURN_IF_ERROR(AddExchanges(options, wire, result.exchanges));
  }
  return absl::OkStatus();
}

}  // namespace leeway
