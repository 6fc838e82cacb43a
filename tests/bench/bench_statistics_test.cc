#include <algorithm>

#include "bench/base/bench_job.h"
#include "bench/base/bench_options.h"
#include "bench/base/statistics.h"
#include "bench/base/transfer.h"
#include "bench/interleave.h"
#include "bench/transport_bench.h"
#include "client/calls/parameter_client.h"
#include "config/job.h"
#include "tests/catch.h"

namespace leeway::bench_statistics {
namespace {

bool Near(double a, double b) { return std::abs(a - b) < 1e-9 * (1 + std::abs(b)); }

TEST_CASE("Percentiles interpolate between neighbours and need no order") {
  CHECK(Median({}) == 0);
  CHECK(Median({3}) == 3);
  CHECK(Near(Median({4, 1, 3, 2}), 2.5));
  CHECK(Near(Percentile({10, 0}, 0.9), 9));
  const Percentiles p = PercentilesOf({5, 1, 4, 2, 3});
  CHECK(p.p50 == 3);
  CHECK(Near(p.p90, 4.6));
  CHECK(p.max == 5);
}

TEST_CASE("Ratios are taken round by round, and a round without a limit counts as nothing") {
  const std::vector<double> ratios = Ratios({1, 4, 9}, {2, 0, 3, 7});
  REQUIRE(ratios.size() == 3);
  CHECK(ratios[0] == 0.5);
  CHECK(ratios[1] == 0);
  CHECK(ratios[2] == 3);
}

TEST_CASE("Figures are medians over rounds of messages, bytes and processor time") {
  const std::vector<TransferRound> rounds = {{.messages = 100,
                                              .seconds = 1,
                                              .cpu_seconds = 0.4,
                                              .latency = Percentiles{0.1, 0.2, 0.3, 0.4}},
                                             {.messages = 300,
                                              .seconds = 1,
                                              .cpu_seconds = 0.3,
                                              .latency = Percentiles{0.3, 0.4, 0.5, 0.6}},
                                             {.messages = 200,
                                              .seconds = 1,
                                              .cpu_seconds = 0.4,
                                              .latency = Percentiles{0.2, 0.3, 0.4, 0.5}}};
  const TransferFigures figures = FiguresOf(rounds, 5'000'000);
  CHECK(figures.messages_per_second == 200);
  CHECK(Near(figures.gigabytes_per_second, 1));
  // 0.8, 0.2 and 0.4 seconds for each GB.
  CHECK(Near(figures.cpu_seconds_per_gigabyte, 0.4));
  REQUIRE(figures.latency.has_value());
  CHECK(figures.latency->p50 == 0.2);
  CHECK(figures.latency->max == 0.5);
}

TEST_CASE("Sizes are read with K, M and G as powers of 1024, counts with powers of 1000") {
  CHECK(*ParseBytes("4096") == 4096);
  CHECK(*ParseBytes("64K") == 65536);
  CHECK(*ParseBytes("1m") == 1048576);
  CHECK(*ParseCount("25M") == 25'000'000);
  for (const char* text : {"", "K", "0", "-1", "1.5M", "1T", "99999999999G", "1 M"}) {
    CHECK_FALSE(ParseBytes(text).ok());
  }
  CHECK(ParseCount("9999G").status().message().find("1099511627776") != std::string::npos);
  CHECK(*ParseBlockBytes("64M") == 64 << 20);
  CHECK_FALSE(ParseBlockBytes("100").ok());
  CHECK_FALSE(ParseBlockBytes("128M").ok());
}

TEST_CASE("Methods and transports are read by their names, others are refused with the choices") {
  CHECK(*ParseMethod("push_pull") == TransferMethod::kPushPull);
  CHECK(*ParseWire("shm") == Wire::kShm);
  CHECK(ParseMethod("pushpull").status().message().find("push_pull") != std::string::npos);
  CHECK(ParseWire("").status().message().find("unix") != std::string::npos);
}

TEST_CASE("A plan keeps as many blocks in flight as a worker does, in bounded memory") {
  for (const uint64_t bytes : {4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}) {
    const TransferPlan plan = PlanFor(TransferMethod::kPushPull, bytes);
    CHECK(plan.blocks >= 4);
    CHECK(plan.blocks % 2 == 0);
    CHECK(plan.call_blocks * plan.open_calls == plan.blocks);
    CHECK(plan.window >= 2);
    // The same block may not be in flight twice: its second lap waits for the first.
    CHECK(plan.window == std::min(WindowFor(bytes), plan.blocks));
    CHECK(plan.total_bytes() <= 256 << 20);
    CHECK(plan.bytes_moved() == 2 * bytes);
  }
}

TEST_CASE("The jobs of the benchmarks are jobs") {
  for (const char* mode : {"sync", "bounded", "async"}) {
    for (const char* update : {"sgd", "momentum", "adam"}) {
      const auto job = ParseJob(BenchJobYaml({.mode = mode,
                                              .update = update,
                                              .wire = Wire::kUnix,
                                              .contributions = "int8",
                                              .servers = 2,
                                              .workers = 3,
                                              .block_bytes = 4096}),
                                "bench.yaml", {});
      INFO(job.status().ToString());
      REQUIRE(job.ok());
      CHECK(job->workers().count() == 3);
      CHECK(job->compression().contributions().has_int8());
    }
  }
}

}  // namespace
}  // namespace leeway::bench_statistics
