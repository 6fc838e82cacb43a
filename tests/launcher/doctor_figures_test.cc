#include <algorithm>

#include "absl/strings/str_cat.h"
#include "config/job.h"
#include "config/validate.h"
#include "launcher/doctor/doctor.h"
#include "launcher/doctor/job_exchange.h"
#include "launcher/doctor/rehearsal.h"
#include "launcher/doctor/step_model.h"
#include "tests/catch.h"

namespace leeway::doctor_figures {
namespace {

bool Near(double a, double b) { return std::abs(a - b) < 1e-9 * (1 + std::abs(b)); }

TEST_CASE("A step is compute and what of the exchange nothing hides") {
  StepParts parts{
      .compute = 10, .exchange = 8, .first_layer_share = 0.25, .hides_behind = 10, .workers = 2};
  StepEstimate estimate = EstimateStep(parts);
  CHECK(estimate.hidden_seconds == 6);
  CHECK(estimate.seconds == 12);
  parts.hides_behind = 0;
  CHECK(EstimateStep(parts).seconds == 18);
  // With four accumulated steps the exchange hides behind one of them.
  parts.hides_behind = 2.5;
  CHECK(EstimateStep(parts).seconds == 15.5);
  // At most the compute time can be hidden.
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
  // Two workers share a processor: each computes half of the time.
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
  // Other work takes a third of the machine.
  parts.stretch = 1.5;
  CHECK(EstimateStep(parts).seconds == 24);
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
  // Several lines come with one heartbeat; the last one says at which clock the worker was.
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

TEST_CASE("Servers are as many as keep the exchange shorter than the compute") {
  // 4 workers x 1 GB through 1 GB/s in 2 s of compute.
  CHECK(ChooseServers(1e9, 4, 1e9, 2, 16).servers == 2);
  CHECK(ChooseServers(1e9, 4, 1e9, 2, 16).enough);
  // The largest permitted number of servers, which is reported as such.
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
                                     "workers.on_worker_loss=continue",
                                     "evaluation={every: {epochs: 1}, early_stop: {patience: 3}}"},
                            .environment = {}});
  INFO(job.status().ToString());
  REQUIRE(job.ok());
  for (const uint32_t processes : {1, 2, 4}) {
    const v1::TrainingJob idle = IdleJob(*job, processes, processes);
    const std::vector<Fault> faults = FindJobFaults(idle);
    CHECK(faults.empty());
    if (!faults.empty()) CHECK(faults[0].path + ": " + faults[0].message == "");
    // The work of no worker is dropped.
    CHECK(idle.consistency().backup_workers() == 0);
    CHECK(idle.workers().on_worker_loss() == v1::WORKER_LOSS_WAIT);
    CHECK(idle.servers().replicas() == std::min(processes, 2u));
  }
}

TEST_CASE("The block size is the smallest that is nearly fastest, with some blocks a server") {
  const std::vector<BlockRate> rates = {
      {64 << 10, 3}, {256 << 10, 4.8}, {1 << 20, 5}, {4 << 20, 4}};
  CHECK(ChooseBlockBytes(rates, uint64_t{1} << 30, 2) == 256 << 10);
  CHECK(ChooseBlockBytes(rates, 1 << 20, 1) == 256 << 10);
  CHECK(ChooseBlockBytes(rates, 1 << 20, 2) == 128 << 10);
  CHECK(ChooseBlockBytes(rates, 1000, 4) == 64 << 10);
}

}  // namespace
}  // namespace leeway::doctor_figures
