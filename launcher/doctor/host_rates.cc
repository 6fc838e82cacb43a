#include "launcher/doctor/host_rates.h"

#include <cstring>
#include <memory>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "bench/base/statistics.h"
#include "bench/bench_pair.h"
#include "bench/interleave.h"
#include "bench/raw/axpy.h"
#include "bench/raw/cipher_rate.h"
#include "bench/transport_bench.h"
#include "bench/update_bench.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/machine.h"
#include "common/security/key_folder.h"
#include "common/status.h"
#include "common/text/format.h"

namespace leeway {
namespace {

constexpr uint64_t kMemoryFloats = 32 << 20;
constexpr int kMemoryPasses = 5;
constexpr uint32_t kHostRounds = 3;

// Returns the rate in GB/s of `pass` over kMemoryFloats floats.
template <typename Pass>
double RateOf(Pass pass) {
  std::vector<double> rates;
  for (int i = 0; i < kMemoryPasses; ++i) {
    const Time began = std::chrono::steady_clock::now();
    pass();
    const double seconds = Seconds(std::chrono::steady_clock::now() - began);
    rates.push_back(1e-9 * kMemoryFloats * sizeof(float) / seconds);
  }
  return Median(rates);
}

// Makes the service of a separate process, so that the memory is freed when the process ends.
absl::StatusOr<BenchService> MemoryService() {
  FloatBuffer x(kMemoryFloats);
  FloatBuffer y(kMemoryFloats);
  const double copy = RateOf([&] { std::memcpy(y.data(), x.data(), x.size() * sizeof(float)); });
  const double add = RateOf([&] { AddScaled(1e-6f, x.span(), y.span()); });
  const auto updates = BenchUpdates({.shard_bytes = 16 << 20,
                                     .block_bytes = 1 << 20,
                                     .rounds = kHostRounds,
                                     .rules = {"sgd", "momentum", "adagrad", "adam", "elastic"},
                                     .contributions = {1},
                                     .threads = {1},
                                     .pieces = {true},
                                     .keep_previous = {true}});
  Json hello = {{"copy", copy}, {"add", add}, {"updates", Json::object()}};
  for (const UpdateResult& update : updates) {
    hello["updates"][update.rule] = 1e-9 * update.gradient_bytes_per_second;
  }
  return BenchService{.hello = std::move(hello),
                      .handle = [](const Json&) { return absl::StatusOr<Json>(Json::object()); }};
}

absl::StatusOr<TransferFigures> MeasureRate(absl::StatusOr<std::unique_ptr<BenchPair>> pair,
                                            const TransferPlan& plan, double seconds) {
  RETURN_IF_ERROR(pair.status());
  ASSIGN_OR_RETURN(const auto rounds,
                   RunInterleaved({pair->get()}, {.rounds = kHostRounds, .seconds = seconds}));
  return FiguresOf(rounds[0], plan.bytes_moved());
}

// Returns a string such as " adam 5.1, sgd 9.8".
std::string UpdatesText(const HostRates& rates) {
  std::string text;
  for (const auto& [rule, rate] : rates.updates) {
    absl::StrAppend(&text, text.empty() ? " " : ", ", rule, " ", Fixed(rate, 1));
  }
  return text;
}

absl::Status MeasureTls(double seconds, HostRates& rates) {
  ASSIGN_OR_RETURN(const auto keys, KeyFolder::Make());
  const TransferPlan plan = PlanFor(TransferMethod::kPushPull, 1 << 20);
  const auto rate = [&](const KeyFolder* with) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const TransferFigures figures,
                     MeasureRate(BenchPair::Leeway(Wire::kTcp, "none", plan, with), plan, seconds));
    return figures.gigabytes_per_second;
  };
  ASSIGN_OR_RETURN(const double plain, rate(nullptr));
  ASSIGN_OR_RETURN(const double secured, rate(keys.get()));
  rates.cipher_gigabytes_per_second = 1e-9 * CipherRate();
  rates.tcp_gigabytes_per_second = plain;
  rates.tls_gigabytes_per_second = secured;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HostRates> MeasureHost(double seconds_each) {
  HostRates rates;
  rates.processors = MachineProcessors();
  rates.memory_bytes = MachineMemoryBytes();
  {
    ASSIGN_OR_RETURN(const auto memory, BenchProcess::Start("memory", MemoryService));
    rates.copy_gigabytes_per_second = memory->hello().value("copy", 0.0);
    rates.add_scaled_gigabytes_per_second = memory->hello().value("add", 0.0);
    rates.updates = memory->hello().value("updates", rates.updates);
  }
  const double seconds = seconds_each / kHostRounds;
  const TransferPlan loopback = PlanFor(TransferMethod::kPushPull, 1 << 20);
  ASSIGN_OR_RETURN(const TransferFigures raw,
                   MeasureRate(BenchPair::Raw(Wire::kTcp, loopback), loopback, seconds));
  rates.loopback_gigabytes_per_second = raw.gigabytes_per_second;
  for (const uint64_t block : {64 << 10, 256 << 10, 1 << 20, 4 << 20}) {
    const TransferPlan plan = PlanFor(TransferMethod::kPushPull, block);
    ASSIGN_OR_RETURN(const TransferFigures figures,
                     MeasureRate(BenchPair::Leeway(Wire::kAuto, "none", plan), plan, seconds));
    rates.exchange.push_back({block, figures.gigabytes_per_second});
  }
  if (const absl::Status status = MeasureTls(seconds, rates); !status.ok()) {
    spdlog::warn("mutual TLS could not be measured: {}", std::string(status.message()));
  }
  const TransferPlan small{
      .method = TransferMethod::kPushPull, .message_bytes = 4096, .blocks = 16, .window = 1};
  ASSIGN_OR_RETURN(const TransferFigures one,
                   MeasureRate(BenchPair::Leeway(Wire::kAuto, "none", small), small, seconds));
  rates.round_trip_seconds = one.latency.has_value() ? one.latency->p50 : 0;
  return rates;
}

Json HostRatesJson(const HostRates& rates) {
  Json exchange = Json::array();
  for (const BlockRate& rate : rates.exchange) {
    exchange.push_back(
        {{"block_bytes", rate.block_bytes}, {"gigabytes_per_second", rate.gigabytes_per_second}});
  }
  return {{"processors", rates.processors},
          {"memory_bytes", rates.memory_bytes},
          {"copy_gigabytes_per_second", rates.copy_gigabytes_per_second},
          {"add_scaled_gigabytes_per_second", rates.add_scaled_gigabytes_per_second},
          {"update_gigabytes_per_second", rates.updates},
          {"loopback_gigabytes_per_second", rates.loopback_gigabytes_per_second},
          {"exchange", exchange},
          {"cipher_gigabytes_per_second", rates.cipher_gigabytes_per_second},
          {"tcp_gigabytes_per_second", rates.tcp_gigabytes_per_second},
          {"tls_gigabytes_per_second", rates.tls_gigabytes_per_second},
          {"round_trip_seconds", rates.round_trip_seconds}};
}

std::string HostRatesText(const HostRates& rates) {
  std::string text = absl::StrCat(
      "This machine: ", rates.processors, " processors, ", Bytes(rates.memory_bytes),
      " of memory\n  memory, one thread: copy ", Fixed(rates.copy_gigabytes_per_second, 1),
      " GB/s, y += a x ", Fixed(rates.add_scaled_gigabytes_per_second, 1),
      " GB/s\n  updates, one thread, GB/s of gradient:", UpdatesText(rates),
      "\n  TCP to itself, both ways: ", Fixed(rates.loopback_gigabytes_per_second, 2),
      " GB/s\n  exchanges between two processes, both ways:");
  for (const BlockRate& rate : rates.exchange) {
    absl::StrAppend(&text, rate.block_bytes == rates.exchange[0].block_bytes ? " " : ", ",
                    Fixed(rate.gigabytes_per_second, 2), " GB/s in blocks of ",
                    Bytes(rate.block_bytes));
  }
  if (rates.tls_gigabytes_per_second > 0) {
    absl::StrAppend(&text, "\n  the same over TCP in blocks of 1 MiB: ",
                    Fixed(rates.tls_gigabytes_per_second, 2), " GB/s with mutual TLS, ",
                    Fixed(rates.tcp_gigabytes_per_second, 2),
                    " GB/s without; one processor encrypts ",
                    Fixed(rates.cipher_gigabytes_per_second, 1), " GB/s");
  }
  absl::StrAppend(&text, "\n  one exchange of 4 KiB: ", Fixed(1e6 * rates.round_trip_seconds, 0),
                  " us\n");
  return text;
}

}  // namespace leeway
