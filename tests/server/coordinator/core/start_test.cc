// How a job begins: ranks, schemas, and missing processes.
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::start {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a registration is answered when all are here and the servers are ready") {
  Scenario job({.workers = 3, .servers = 2});
  REQUIRE(job.Server(0).ok());
  absl::Status waiting = job.Worker(0, 100).status();
  CHECK(absl::IsUnavailable(waiting));
  job.now += std::chrono::seconds(12);
  waiting = job.Worker(0, 100).status();
  CHECK(waiting.message() == "waiting for workers 1, 2 and server 1 to register (12 s of 120 s)");
  CHECK(job.Take<ConfigureServer>().empty());

  REQUIRE(job.Server(1).ok());
  CHECK(absl::IsUnavailable(job.Worker(1, 101).status()));
  waiting = job.Worker(2, 102).status();
  CHECK_THAT(std::string(waiting.message()), Contains("servers 0, 1 to get ready"));
  const auto configure = job.Take<ConfigureServer>();
  REQUIRE(configure.size() == 2);
  CHECK(configure[1].request.length().clocks() == 100);
  CHECK(configure[1].request.length().steps_per_epoch() == 10);
  CHECK(configure[1].request.servers(1) == "server1:1");

  job.core.Answered(ConfigureDone{0, configure[0].round, absl::OkStatus()}, job.now);
  CHECK(absl::IsUnavailable(job.Worker(2, 102).status()));
  job.core.Answered(ConfigureDone{1, configure[1].round, absl::OkStatus()}, job.now);
  CHECK(job.core.state() == v1::JOB_RUNNING);
  const auto reply = job.Worker(2, 102);
  REQUIRE(reply.ok());
  CHECK(reply->rank() == 2);
  CHECK(reply->incarnation() == 1);
  CHECK(reply->block_elements() == 5120);
  CHECK(reply->servers_size() == 2);
  CHECK(reply->schema().total() == 10'000);
}

TEST_CASE("a repeated registration is the same life") {
  Scenario job(JobShape{});
  job.Start();
  const auto first = job.Worker(1, 101);
  const auto again = job.Worker(1, 101);
  REQUIRE(again.ok());
  CHECK(again->incarnation() == first->incarnation());
}

TEST_CASE("without a rank a worker gets the lowest free one") {
  Scenario job({.workers = 3, .servers = 1});
  job.Server(0).IgnoreError();
  job.Worker(1, 50).IgnoreError();
  for (const uint32_t pid : {60u, 61u}) job.Worker(std::nullopt, pid).IgnoreError();
  for (const auto& command : job.Take<ConfigureServer>()) {
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  CHECK(job.Worker(std::nullopt, 60)->rank() == 0);
  CHECK(job.Worker(std::nullopt, 61)->rank() == 2);
  const absl::Status full = job.Worker(std::nullopt, 62).status();
  CHECK(absl::IsFailedPrecondition(full));
  CHECK_THAT(std::string(full.message()), Contains("all 3 ranks are taken"));
}

TEST_CASE("a named rank goes to the newcomer, and the one before is refused") {
  Scenario job(JobShape{});
  job.Start();
  const uint64_t before = job.incarnations[1];
  const auto replacement = job.Worker(1, 999);
  REQUIRE(replacement.ok());
  CHECK(replacement->incarnation() == before + 1);
  // The dead process's own late registration must not win the rank back.
  CHECK(absl::IsAborted(job.Worker(1, 101).status()));
  job.incarnations[1] = before;
  const absl::Status fenced = job.Beat(1).status();
  CHECK(absl::IsAborted(fenced));
  CHECK_THAT(std::string(fenced.message()), Contains("replaced by incarnation 2"));
}

TEST_CASE("incarnations of a resumed job begin above the base") {
  CoordinatorOptions options = TestOptions({});
  options.incarnation_base = 5000;
  Scenario job(std::move(options));
  job.Start();
  CHECK(job.incarnations[0] == 5001);
}

TEST_CASE("another model is refused, naming the first tensor that differs") {
  Scenario job(JobShape{});
  job.Worker(0, 100).IgnoreError();
  v1::RegisterWorkerRequest request = WorkerRequest(1, 101);
  *request.mutable_schema() = TestSchema(12);
  const absl::Status status = job.core.RegisterWorker(request, job.now).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()),
             Contains("worker 1 (process 101 on host) is dense_0/weight [4, 12]") &&
                 Contains("worker 0 (process 100 on host) is dense_0/weight [4, 2000]"));
  // The process holds no rank.
  CHECK(job.core.Status(job.now).workers(1).state() == "waiting");
}

TEST_CASE("a resumed job takes only the checkpoint's model") {
  CoordinatorOptions options = TestOptions({});
  options.resumed.emplace();
  options.resumed->folder = "/run/checkpoints/clock-20";
  options.resumed->manifest.set_clock(20);
  *options.resumed->manifest.mutable_schema() = TestSchema(12);
  Scenario job(std::move(options));
  const absl::Status status = job.Worker(0, 100).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Contains("the checkpoint /run/checkpoints/clock-20"));
}

TEST_CASE("a resumed job has its own momenta and kinds of tensors, not the checkpoint's") {
  CoordinatorOptions options = TestOptions({});
  options.resumed.emplace();
  options.resumed->folder = "/run/checkpoints/clock-20";
  options.resumed->manifest.set_clock(20);
  *options.resumed->manifest.mutable_schema() = TestSchema();
  options.resumed->manifest.mutable_schema()->mutable_tensors(1)->set_momentum(0.25);
  Scenario job(std::move(options));
  for (uint32_t i = 0; i < 2; ++i) job.Server(i).IgnoreError();
  for (uint32_t i = 0; i < 2; ++i) {
    v1::RegisterWorkerRequest request = WorkerRequest(i, 100 + i);
    request.mutable_schema()->mutable_tensors(1)->set_momentum(0.5);
    // The other worker does not state the kind.
    if (i == 0) request.mutable_schema()->mutable_tensors(1)->set_kind(v1::TENSOR_KIND_BIAS);
    job.core.RegisterWorker(request, job.now).IgnoreError();
  }
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].request.schema().tensors(1).momentum() == 0.5);
  CHECK_FALSE(commands[0].request.schema().tensors(0).has_momentum());
  CHECK(commands[0].request.schema().tensors(1).kind() == v1::TENSOR_KIND_BIAS);
}

TEST_CASE("a worker without a schema adopts the others'") {
  Scenario job(JobShape{});
  for (uint32_t i = 0; i < 2; ++i) job.Server(i).IgnoreError();
  std::vector<v1::RegisterWorkerRequest> requests = {WorkerRequest(0, 100), WorkerRequest(1, 101)};
  for (v1::RegisterWorkerRequest& request : requests) {
    request.clear_schema();
    request.clear_steps_per_epoch();
    job.core.RegisterWorker(request, job.now).IgnoreError();
  }
  CHECK_THAT(job.core.Status(job.now).message(), Contains("a worker that brings the model"));
  REQUIRE(absl::IsUnavailable(job.Worker(0, 100).status()));
  for (const auto& command : job.Take<ConfigureServer>()) {
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  job.Carry();
  const auto reply = job.core.RegisterWorker(requests[1], job.now);
  REQUIRE(reply.ok());
  CHECK(reply->schema().total() == 10'000);
}

TEST_CASE("peers of another protocol, job file, or rank are refused") {
  Scenario job(JobShape{});
  v1::RegisterWorkerRequest request = WorkerRequest(0, 100);
  request.mutable_build()->set_protocol(9);
  request.mutable_build()->set_version("9.9");
  absl::Status status = job.core.RegisterWorker(request, job.now).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()),
             Contains("protocol 9 (version '9.9')") && Contains("protocol 2 (version '0.2.0')"));

  request = WorkerRequest(0, 100);
  request.set_job_sha256("bb");
  status = job.core.RegisterWorker(request, job.now).status();
  CHECK_THAT(std::string(status.message()), Contains("bb") && Contains("aa"));

  status = job.Worker(7, 100).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Contains("ranks are 0 to 1"));
  CHECK(absl::IsInvalidArgument(job.Server(2).status()));
}

TEST_CASE("job_only registers nothing") {
  Scenario job(JobShape{});
  v1::RegisterWorkerRequest request = WorkerRequest(0, 100);
  request.set_job_only(true);
  const auto reply = job.core.RegisterWorker(request, job.now);
  REQUIRE(reply.ok());
  CHECK(reply->job_id() == kJob);
  CHECK(job.core.Status(job.now).workers(0).state() == "waiting");
}

TEST_CASE("who reads only is told of the model while there is one, and takes no part") {
  Scenario job(JobShape{});
  v1::RegisterWorkerRequest request = WorkerRequest(0, 999);
  request.clear_rank();
  request.clear_schema();
  request.set_reads_only(true);
  const auto read = [&] { return job.core.RegisterWorker(request, job.now); };
  CHECK(absl::IsUnavailable(read().status()));
  CHECK_THAT(std::string(read().status().message()), Contains("waiting for"));
  job.Start();
  const auto reply = read();
  REQUIRE(reply.ok());
  const auto worker = job.Worker(0, 100);
  REQUIRE(worker.ok());
  v1::RegisterWorkerReply model = *worker;
  model.clear_rank();
  model.clear_incarnation();
  model.clear_save_state();
  model.clear_cut_every();
  CHECK(reply->DebugString() == model.DebugString());
  const v1::JobStatus status = job.core.Status(job.now);
  CHECK(status.workers_size() == 2);
  CHECK(status.workers(0).pid() == 100);
  request.mutable_build()->set_protocol(1);
  CHECK(absl::IsFailedPrecondition(read().status()));
}

TEST_CASE("a start that takes too long fails, naming who is missing, and tells who waited") {
  Scenario job({.workers = 3});
  job.Server(0).IgnoreError();
  for (int second = 0; second < 121; ++second) {
    job.Pass(1);
    job.Seal();
    const absl::Status status = job.Worker(1, 101).status();
    if (second < 118) CHECK(absl::IsUnavailable(status));
    if (absl::IsFailedPrecondition(status)) break;
  }
  const v1::JobStatus status = job.core.Status(job.now);
  CHECK(status.state() == v1::JOB_FAILED);
  CHECK_THAT(status.message(), Contains("waiting for workers 0, 2 and server 1 to register"));
  CHECK(job.Take<SaveAll>().empty());
  CHECK(job.Take<ShutdownServers>().size() == 1);
  job.core.Answered(ShutdownDone{0}, job.now);
  CHECK(job.core.over());
}

TEST_CASE("a worker that goes silent while the others are waited for is missing again") {
  Scenario job({.workers = 2, .servers = 1});
  job.Server(0).IgnoreError();
  job.Worker(0, 100).IgnoreError();
  job.Pass(15);
  CHECK(job.core.Status(job.now).workers(0).state() == "lost");
  const absl::Status status = job.Worker(1, 101).status();
  CHECK_THAT(std::string(status.message()), Contains("worker 0 to register"));
}

TEST_CASE("a server that restarts while the job starts is configured anew, in a new round") {
  Scenario job({.workers = 1, .servers = 2});
  for (uint32_t i = 0; i < 2; ++i) job.Server(i).IgnoreError();
  job.Worker(0, 100).IgnoreError();
  const auto first = job.Take<ConfigureServer>();
  REQUIRE(first.size() == 2);
  job.core.Answered(ConfigureDone{0, first[0].round, absl::OkStatus()}, job.now);
  job.Server(1, 2).IgnoreError();
  const auto second = job.Take<ConfigureServer>();
  REQUIRE(second.size() == 2);
  job.core.Answered(ConfigureDone{1, first[1].round, absl::OkStatus()}, job.now);
  job.core.Answered(ConfigureDone{0, second[0].round, absl::OkStatus()}, job.now);
  CHECK(job.core.state() == v1::JOB_STARTING);
  job.core.Answered(ConfigureDone{1, second[1].round, absl::OkStatus()}, job.now);
  CHECK(job.core.state() == v1::JOB_RUNNING);
}

TEST_CASE("a server that cannot make its blocks fails the job") {
  Scenario job({.workers = 1, .servers = 1});
  job.Server(0).IgnoreError();
  job.Worker(0, 100).IgnoreError();
  const auto configure = job.Take<ConfigureServer>();
  job.core.Answered(ConfigureDone{0, configure[0].round, absl::DataLossError("shard-0: checksum")},
                    job.now);
  job.Seal();
  const absl::Status status = job.Worker(0, 100).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Contains("shard-0: checksum"));
  CHECK(job.core.state() == v1::JOB_FAILED);
}

TEST_CASE("a job stopped before it began ends without a checkpoint") {
  Scenario job(JobShape{});
  job.Server(0).IgnoreError();
  job.Worker(0, 100).IgnoreError();
  job.core.StopJob("Ctrl-C", job.now);
  CHECK(job.core.state() == v1::JOB_STOPPED);
  CHECK(job.Take<SaveAll>().empty());
}

TEST_CASE("who waits for the start hears that there is none once that is on record") {
  Scenario job(JobShape{});
  job.Server(0).IgnoreError();
  job.Worker(0, 100).IgnoreError();
  job.core.StopJob("Ctrl-C", job.now);
  // If the coordinator is killed now, the next one waits for this worker.
  CHECK(absl::IsUnavailable(job.Worker(0, 100).status()));
  CHECK(absl::IsUnavailable(job.Worker(1, 101).status()));
  const auto records = job.Take<WriteRecord>();
  REQUIRE(records.size() == 1);
  CHECK(records[0].record.outcome() == v1::JOB_STOPPED);
  job.core.Answered(RecordDone{records[0].record, absl::OkStatus()}, job.now);
  job.core.Answered(ShutdownDone{0}, job.now);
  CHECK_FALSE(job.core.over());
  const absl::Status told = job.Worker(0, 100).status();
  CHECK(absl::IsAlreadyExists(told));
  CHECK_THAT(std::string(told.message()), Contains("Ctrl-C"));
  CHECK(job.core.over());
}

// A coordinator after one whose job had begun with passes of `steps` batches.
CoordinatorOptions After(JobShape shape, uint64_t steps) {
  CoordinatorOptions options = TestOptions(shape);
  options.generation = 1;
  options.before.emplace();
  options.before->set_steps_per_epoch(steps);
  return options;
}

// A restarted coordinator, which hears of rank 0 only.
void HearOfRank0(Scenario& job) {
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Server(i).ok());
  job.Worker(0, 100).IgnoreError();
  for (int second = 0; second < 11; ++second) {
    job.Pass(1);
    job.Worker(0, 100).IgnoreError();
  }
}

TEST_CASE("a job that had begun goes on without who is gone for good") {
  Scenario job(After({.mode = v1::CONSISTENCY_MODE_ASYNC}, 12));
  HearOfRank0(job);
  const auto configure = job.Take<ConfigureServer>();
  REQUIRE(configure.size() == 2);
  // The pass keeps its length, although the worker with the longest share of the data is missing.
  CHECK(configure[0].request.length().steps_per_epoch() == 12);
  for (const ConfigureServer& each : configure) {
    job.core.Answered(ConfigureDone{each.server, each.round, absl::OkStatus()}, job.now);
  }
  CHECK(job.core.state() == v1::JOB_RUNNING);
  const auto live = job.Take<SetLive>();
  REQUIRE(live.size() == 1);
  CHECK(live[0] == SetLive{1, false});
  // That worker may still come.
  REQUIRE(job.Worker(1, 101).ok());
  CHECK(job.Take<SetLive>() == std::vector<SetLive>{{1, true}});
}

TEST_CASE("a job that had not begun, or needs everybody, waits for all") {
  Scenario fresh(After({.mode = v1::CONSISTENCY_MODE_ASYNC}, 0));
  HearOfRank0(fresh);
  CHECK(fresh.Take<ConfigureServer>().empty());
  Scenario sync(After({.mode = v1::CONSISTENCY_MODE_SYNC}, 12));
  HearOfRank0(sync);
  CHECK(sync.Take<ConfigureServer>().empty());
}

TEST_CASE("the record says that the job has begun once it has, and before a worker hears of it") {
  Scenario job(JobShape{});
  job.keeps_records = false;
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Server(i).ok());
  for (uint32_t rank : {0u, 1u}) job.Worker(rank, 100 + rank).IgnoreError();
  const auto before = job.Take<WriteRecord>();
  REQUIRE(before.size() == 1);
  CHECK(before[0].record.steps_per_epoch() == 0);
  job.core.Answered(RecordDone{before[0].record, absl::OkStatus()}, job.now);
  for (const ConfigureServer& each : job.Take<ConfigureServer>()) {
    job.core.Answered(ConfigureDone{each.server, each.round, absl::OkStatus()}, job.now);
  }
  CHECK(job.core.state() == v1::JOB_RUNNING);
  CHECK(absl::IsUnavailable(job.Worker(0, 100).status()));
  const auto begun = job.Take<WriteRecord>();
  REQUIRE(begun.size() == 1);
  CHECK(begun[0].record.steps_per_epoch() == 10);
  job.core.Answered(RecordDone{begun[0].record, absl::OkStatus()}, job.now);
  CHECK(job.Worker(0, 100).ok());
}

}  // namespace
}  // namespace leeway::start
