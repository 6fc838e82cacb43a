#include <algorithm>

#include "absl/strings/str_cat.h"
#include "config/job.h"
#include "config/validate.h"
#include "deploy/bench/bench_job.h"
#include "deploy/bench/bench_options.h"
#include "deploy/bench/doctor.h"
#include "deploy/bench/interleave.h"
#include "deploy/bench/job_exchange.h"
#include "deploy/bench/rehearsal.h"
#include "deploy/bench/statistics.h"
#include "deploy/bench/step_model.h"
#include "deploy/bench/transfer.h"
#include "deploy/bench/transport_bench.h"
#include "tests/catch.h"
#include "worker/client/parameter_client.h"

namespace leeway {
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
  // 0.8, 0.2 and 0.4 s a GB.
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
    // Of two laps of a block the second waits for the first.
    CHECK(plan.window == std::min(WindowFor(bytes), plan.blocks));
    CHECK(plan.total_bytes() <= 256 << 20);
    CHECK(plan.bytes_moved() == 2 * bytes);
  }
}

TEST_CASE("A step is compute and what of the exchange nothing hides") {
  StepParts parts{
      .compute = 10, .exchange = 8, .first_layer_share = 0.25, .hides_behind = 10, .workers = 2};
  StepEstimate estimate = EstimateStep(parts);
  CHECK(estimate.hidden_seconds == 6);
  CHECK(estimate.seconds == 12);
  parts.hides_behind = 0;
  CHECK(EstimateStep(parts).seconds == 18);
  // Of four accumulated steps it hides behind one.
  parts.hides_behind = 2.5;
  CHECK(EstimateStep(parts).seconds == 15.5);
  // No more is hidden than there is compute to hide behind.
  parts = {.compute = 2, .exchange = 8, .first_layer_share = 0, .hides_behind = 2, .workers = 2};
  CHECK(EstimateStep(parts).seconds == 8);
  CHECK(EstimateStep(parts).hidden_seconds == 2);
}

TEST_CASE("No more of a tried exchange is hidden than there is compute to hide it behind") {
  const StepParts small{.compute = 0.003, .exchange = 0.16, .hides_behind = 0.003};
  CHECK(HiddenSeconds(small, 0.96) == 0.003);
  const StepParts large{.compute = 10, .exchange = 8, .hides_behind = 10};
  CHECK(HiddenSeconds(large, 0.75) == 6);
  CHECK(HiddenSeconds(large, 1) == 8);
  // Two workers on a processor: each computes half of the time.
  const StepParts shared{.compute = 3, .exchange = 8, .hides_behind = 3, .turns = 2};
  CHECK(HiddenSeconds(shared, 0.9) == 6);
}

TEST_CASE("Processors that are all busy are what a step waits for") {
  StepParts parts{.compute = 10,
                  .compute_cpu = 10,
                  .exchange = 8,
                  .exchange_cpu = 12,
                  .first_layer_share = 0,
                  .hides_behind = 10,
                  .workers = 2,
                  .processors = 2};
  const StepEstimate estimate = EstimateStep(parts);
  CHECK(estimate.seconds == 16);
  CHECK(estimate.hidden_seconds == 2);
  CHECK(estimate.processor_bound);
  // Others take a third of the machine.
  parts.stretch = 1.5;
  CHECK(EstimateStep(parts).seconds == 24);
}

TEST_CASE("The block size is the smallest that is nearly fastest, with some blocks a server") {
  const std::vector<BlockRate> rates = {
      {64 << 10, 3}, {256 << 10, 4.8}, {1 << 20, 5}, {4 << 20, 4}};
  CHECK(ChooseBlockBytes(rates, uint64_t{1} << 30, 2) == 256 << 10);
  CHECK(ChooseBlockBytes(rates, 1 << 20, 1) == 256 << 10);
  CHECK(ChooseBlockBytes(rates, 1 << 20, 2) == 128 << 10);
  CHECK(ChooseBlockBytes(rates, 1000, 4) == 64 << 10);
}

TEST_CASE("No more processes are measured than a machine holds") {
  const uint64_t gigabyte = 1'000'000'000;
  CHECK(ProcessesToMeasure(3, 1'000'000, 8 * gigabyte) == 3);
  CHECK(ProcessesToMeasure(256, 1'000'000, 8 * gigabyte) == 32);
  CHECK(ProcessesToMeasure(8, gigabyte / 4, 8 * gigabyte) == 2);
  CHECK(ProcessesToMeasure(8, 10 * gigabyte, 8 * gigabyte) == 1);
  CHECK(ProcessesToMeasure(8, 0, 0) == 1);
}

std::string StepLine(double time, uint32_t rank, uint64_t clock, uint64_t examples = 0) {
  return absl::StrCat(R"({"event":"step","time":)", time, R"(,"rank":)", rank, R"(,"clock":)",
                      clock, R"(,"examples":)", examples, "}\n");
}

TEST_CASE("A rehearsal counts the clocks between heartbeats, once each worker has some") {
  std::string metrics = "{\"event\":\"job_started\",\"time\":99}\n";
  // Several lines come with one heartbeat; the last says where the worker was.
  for (const uint32_t rank : {0, 1}) {
    metrics += StepLine(100, rank, 5) + StepLine(100, rank, 10) + StepLine(100.5, rank, 60);
  }
  CHECK(ReadRehearsal(metrics, 2, 1).clocks == 0);
  metrics += StepLine(101.5, 0, 160) + StepLine(101.5, 1, 310);
  const Rehearsal rehearsal = ReadRehearsal(metrics + "{\"event\":\"st", 2, 1);
  CHECK(rehearsal.clocks == 150 + 300);
  // 100 and 200 clocks a second.
  CHECK(Near(rehearsal.clock_seconds, 1 / 150.0));
  CHECK(ReadRehearsal(metrics, 3, 1).clocks == 0);
  CHECK(ReadRehearsal(metrics, 2, 2).clocks == 0);
  CHECK(ReadRehearsal("", 1, 0).clocks == 0);
}

TEST_CASE("A rehearsal counts the examples that each worker has, from the first heartbeat on") {
  std::string metrics;
  for (const uint32_t rank : {0, 1}) {
    const uint64_t batch = rank == 0 ? 10 : 4;
    metrics += StepLine(100, rank, 5, 5 * batch) + StepLine(101, rank, 8, 3 * batch) +
               StepLine(101, rank, 15, 7 * batch) + StepLine(102, rank, 25, 10 * batch);
  }
  // 10 clocks a second.
  CHECK(Near(ReadRehearsal(metrics, 2, 1).examples_per_second, 100 + 40));
}

TEST_CASE("A rehearsal says what of the exchange went on while nobody waited") {
  std::string metrics;
  for (const int time : {100, 101, 102}) {
    for (const uint32_t rank : {0, 1}) {
      metrics += "{\"event\":\"step\",\"time\":" + std::to_string(time) +
                 ",\"rank\":" + std::to_string(rank) + ",\"clock\":" + std::to_string(10 * time) +
                 ",\"exchange_seconds\":0.4,\"wait_seconds\":" + (rank == 0 ? "0.1" : "0.2") +
                 "}\n";
    }
  }
  CHECK(Near(ReadRehearsal(metrics, 2, 1).hidden_share, 1 - 0.3 / 0.8));
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

TEST_CASE("Servers are as many as keep the exchange shorter than the compute") {
  // 4 workers x 1 GB through 1 GB/s in 2 s of compute.
  CHECK(ChooseServers(1e9, 4, 1e9, 2, 16).servers == 2);
  CHECK(ChooseServers(1e9, 4, 1e9, 2, 16).enough);
  // All that there may be, and that is said.
  CHECK(ChooseServers(1e9, 4, 1e9, 0.1, 16).servers == 16);
  CHECK_FALSE(ChooseServers(1e9, 4, 1e9, 0.1, 16).enough);
  CHECK(ChooseServers(1e3, 4, 1e9, 1, 16).servers == 1);
  CHECK(ChooseServers(1e3, 4, 0, 1, 16).servers == 1);
}

TEST_CASE("Servers that are not enough are not said to be") {
  Diagnosis diagnosis;
  JobDiagnosis& job = diagnosis.job.emplace();
  job.servers_wanted = 2;
  CHECK_THAT(DiagnosisText(diagnosis), Catch::Contains("servers: 2 are enough"));
  job.servers_enough = false;
  CHECK_THAT(DiagnosisText(diagnosis), Catch::Contains("servers: not even 2 are enough"));
}

TEST_CASE("A job whose exchange alone is measured is a valid one, however few take part") {
  const auto job = LoadJob(LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml",
                           {.sets = {"servers.count=4", "servers.replicas=2", "workers.count=4",
                                     "exchange={type: gradient}", "consistency={mode: sync}",
                                     "consistency.backup_workers=2", "data.assignment=leased",
                                     "workers.on_worker_loss=continue"},
                            .environment = {}});
  INFO(job.status().ToString());
  REQUIRE(job.ok());
  for (const uint32_t processes : {1, 2, 4}) {
    const v1::TrainingJob idle = IdleJob(*job, processes, processes);
    const std::vector<Fault> faults = FindJobFaults(idle);
    CHECK(faults.empty());
    if (!faults.empty()) CHECK(faults[0].path + ": " + faults[0].message == "");
    // Nobody's work is dropped.
    CHECK(idle.consistency().backup_workers() == 0);
    CHECK(idle.workers().on_worker_loss() == v1::WORKER_LOSS_WAIT);
    CHECK(idle.servers().replicas() == std::min(processes, 2u));
  }
}

}  // namespace
}  // namespace leeway
