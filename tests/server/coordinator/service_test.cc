// The coordinator over gRPC, with fake servers that only answer what they are told to answer.
#include <fstream>
#include <limits>
#include <thread>

#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "common/rpc/host.h"
#include "server/coordinator/coordinator_host.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"
#include "tests/server/coordinator/service_rig.h"
#include "tests/temp_folder.h"

namespace leeway::service {
namespace {

using testing::FakeServer;
using testing::kLimit;
using testing::MemorySink;
using testing::ServedJob;

TEST_CASE("a probe comes back whole, with the host that it has reached, and has a bound") {
  ServedJob job(JobShape{});
  v1::ProbeLinkRequest request;
  v1::ProbeLinkReply reply;
  request.set_payload(std::string(4 << 20, 'x'));
  grpc::ClientContext context;
  REQUIRE(job.stub->ProbeLink(&context, request, &reply).ok());
  CHECK(reply.payload() == request.payload());
  CHECK(reply.host() == HostIdentity());
  request.set_payload(std::string((4 << 20) + 1, 'x'));
  grpc::ClientContext again;
  const grpc::Status refused = job.stub->ProbeLink(&again, request, &reply);
  CHECK(refused.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_CASE("a job goes through over gRPC: started, a worker replaced, saved, shut down") {
  ServedJob job({.mode = v1::CONSISTENCY_MODE_BOUNDED, .clocks = 5, .elastic = true});
  absl::StatusOr<v1::RegisterWorkerReply> second;
  std::thread other([&] { second = job.Register(1, 101); });
  const auto first = job.Register(0, 100);
  other.join();
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->save_state());
  CHECK(first->servers(1) == job.fakes[1].address());
  CHECK(job.fakes[0].told().size() == 2);  // Configured at the second attempt.

  // Worker 1 falls silent; worker 0 does not.
  std::thread beating([&] {
    while (!job.host->WaitUntilOver(std::chrono::steady_clock::now() + FromSeconds(0.1))) {
      v1::HeartbeatRequest request;
      request.set_job(kJob);
      request.set_incarnation(1);
      v1::StepMetrics* metrics = request.add_steps();
      metrics->set_clock(1);
      v1::HeartbeatReply reply;
      grpc::ClientContext context;
      job.stub->Heartbeat(&context, request, &reply);
    }
  });
  CHECK(job.fakes[1].WaitFor("lost 1"));
  const auto replacement = job.Register(1, 102);
  REQUIRE(replacement.ok());
  CHECK(replacement->incarnation() == 2);
  CHECK(job.fakes[1].WaitFor("live 1"));

  const std::string state(3 << 20, 'x');
  CHECK(absl::IsAborted(job.SaveState(1, 1, 0, state)));
  CHECK(absl::IsDataLoss(job.SaveState(1, 2, state.size() + 1, state)));
  CHECK(absl::IsInvalidArgument(job.Leave(1, 2, 4)));
  for (const uint32_t rank : {0u, 1u}) {
    REQUIRE(job.SaveState(rank, rank + 1, state.size(), state).ok());
    REQUIRE(job.Leave(rank, rank + 1, 5).ok());
  }
  CHECK(job.host->WaitUntilOver() == v1::JOB_FINISHED);
  beating.join();

  REQUIRE(job.sink.manifests().size() == 1);
  CHECK(job.sink.manifests()[0].worker_states_size() == 2);
  for (FakeServer& fake : job.fakes) CHECK(fake.told().back() == "shutdown");
  const std::vector<std::string> events = job.Events();
  CHECK(std::count(events.begin(), events.end(), "step") == 1);
  CHECK(std::count(events.begin(), events.end(), "checkpoint") == 1);
  CHECK(events.back() == "job_finished");

  v1::LoadWorkerStateRequest request;
  request.set_job(kJob);
  request.set_rank(1);
  request.set_incarnation(2);
  grpc::ClientContext context;
  auto reader = job.stub->LoadWorkerState(&context, request);
  v1::WorkerStateChunk chunk;
  std::string loaded;
  while (reader->Read(&chunk)) loaded += chunk.data();
  CHECK(reader->Finish().ok());
  CHECK(loaded == state);
}

TEST_CASE("a job that waits is stopped over gRPC, and says what it waits for") {
  ServedJob job({});
  v1::JobStatus status;
  {
    grpc::ClientContext context;
    REQUIRE(job.stub->GetJobStatus(&context, {}, &status).ok());
  }
  CHECK(status.state() == v1::JOB_STARTING);
  CHECK_THAT(status.message(), Catch::Matchers::Contains("waiting for workers 0, 1"));
  v1::StopJobRequest request;
  request.set_reason("enough");
  v1::StopJobReply reply;
  grpc::ClientContext context;
  REQUIRE(job.stub->StopJob(&context, request, &reply).ok());
  CHECK(job.host->WaitUntilOver() == v1::JOB_STOPPED);
}

TEST_CASE("while a record cannot be written nobody is told what follows from it") {
  ServedJob job({});
  size_t told = 0;
  job.sink.Fail(3, [&] {
    for (FakeServer& fake : job.fakes) told += fake.told().size();
  });
  std::thread other([&] { CHECK(job.Register(1, 101).ok()); });
  CHECK(job.Register(0, 100).ok());
  other.join();
  CHECK(told == 0);
  // One record of the generation, before servers hear of it, and one of the job's beginning, before
  // workers do.
  CHECK(job.sink.records().size() == 2);
  CHECK(job.sink.records()[0].steps_per_epoch() == 0);
  CHECK(job.sink.records()[1].steps_per_epoch() == 10);
  for (FakeServer& fake : job.fakes) CHECK(fake.told().size() == 2);
  job.sink.Fail(0);
  job.host->StopJob("enough");
  for (const uint32_t rank : {0u, 1u}) CHECK(job.Leave(rank, 1, 0, v1::LEAVE_STOPPED).ok());
  CHECK(job.host->WaitUntilOver() == v1::JOB_STOPPED);
  const std::vector<std::string> events = job.Events();
  CHECK(std::count(events.begin(), events.end(), "record_failed") == 1);
}

TEST_CASE("a record that can never be written ends the job, and servers hear of the end only") {
  ServedJob job({}, 0.5);
  job.sink.Fail(std::numeric_limits<int>::max());
  for (FakeServer& fake : job.fakes) {
    while (job.host->Status().servers(0).state() == "waiting") std::this_thread::yield();
    CHECK(fake.told().empty());
  }
  job.host->StopJob("enough");
  CHECK(job.host->WaitUntilOver(std::chrono::steady_clock::now() + kLimit).has_value());
  CHECK(job.fakes[0].told() == std::vector<std::string>{"shutdown"});
}

TEST_CASE("servers that cannot be reached do not keep the coordinator") {
  ServedJob job({});
  v1::RegisterServerRequest gone;
  *gone.mutable_build() = ThisBuild();
  gone.set_index(1);
  gone.set_address("127.0.0.1:1");
  v1::RegisterServerReply reply;
  grpc::ClientContext context;
  REQUIRE(job.stub->RegisterServer(&context, gone, &reply).ok());
  job.host->StopJob("enough");
  CHECK(job.host->WaitUntilOver(std::chrono::steady_clock::now() + kLimit) == v1::JOB_STOPPED);
}

TEST_CASE("a record that nothing follows from holds nothing back, and is written when it can be") {
  ServedJob job({.mode = v1::CONSISTENCY_MODE_ASYNC});
  std::thread other([&] { CHECK(job.Register(1, 101).ok()); });
  CHECK(job.Register(0, 100).ok());
  other.join();
  const size_t before = job.sink.records().size();
  job.sink.Fail(std::numeric_limits<int>::max());
  job.host->StopJob("enough");
  // Worker 0 is silent; the servers hear of it, and the log says so.
  CHECK(job.fakes[0].WaitFor("lost 0"));
  CHECK(job.sink.records().size() == before);
  job.sink.Fail(0);
  const Time deadline = std::chrono::steady_clock::now() + kLimit;
  while (job.sink.records().size() == before && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  REQUIRE(job.sink.records().size() > before);
  CHECK(job.sink.records()[before].stop_reason() == "enough");
  for (const uint32_t rank : {0u, 1u}) CHECK(job.Leave(rank, 1, 0, v1::LEAVE_STOPPED).ok());
  CHECK(job.host->WaitUntilOver() == v1::JOB_STOPPED);
}

TEST_CASE("what happened is in the log, also while a record waits and when its process ends") {
  TempFolder folder;
  MemorySink sink;
  CoordinatorHostOptions options{.core = TestOptions({})};
  options.core.run_dir = folder.path();
  sink.Fail(std::numeric_limits<int>::max());
  {
    auto host = *CoordinatorHost::Start(std::move(options), &sink);
    const auto tell = [&](auto what) {
      host->Ask([&](CoordinatorCore& core, Time now) {
        what(core, now);
        return 0;
      });
    };
    for (uint32_t i = 0; i < 2; ++i) {
      tell([&](CoordinatorCore& core, Time now) {
        v1::RegisterServerRequest request;
        *request.mutable_build() = ThisBuild();
        request.set_index(i);
        request.set_address("127.0.0.1:1");
        CHECK(core.RegisterServer(request, now).ok());
      });
    }
    // The second registration begins the servers' round, whose record cannot be written.
    for (const uint32_t pid : {100u, 101u}) {
      tell([&](CoordinatorCore& core, Time now) {
        core.RegisterWorker(WorkerRequest(pid - 100, pid), now).IgnoreError();
      });
    }
    tell([&](CoordinatorCore& core, Time now) {
      core.RegisterWorker(WorkerRequest(0, 102), now).IgnoreError();
    });
  }
  std::ifstream file(folder / "metrics.jsonl");
  size_t lives = 0;
  for (std::string line; std::getline(file, line);) {
    lives += nlohmann::json::parse(line)["event"] == "worker_registered" ? 1 : 0;
  }
  CHECK(lives == 3);
}

}  // namespace
}  // namespace leeway::service
