// A server's blocks are lost: all processes go back to the newest complete cut, under a new
// generation.
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::going_back {
namespace {

using Catch::Matchers::Contains;

// Returns what each of the two servers was told to load.
std::vector<std::string> Configured(Scenario& job) {
  std::vector<std::string> checkpoints;
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    checkpoints.push_back(command.request.checkpoint());
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  return checkpoints;
}

void CompleteCut(Scenario& job, uint64_t clock) {
  for (uint32_t server = 0; server < job.servers; ++server) {
    REQUIRE(job.Shard(server, clock).ok());
  }
  REQUIRE(job.Take<WriteManifest>().size() == 1);
  job.core.Answered(ManifestWritten{clock, absl::OkStatus()}, job.now);
}

// Server 1 was killed and has been started again.
void Replace(Scenario& job, uint64_t nonce = 2) { REQUIRE(job.Server(1, nonce).ok()); }

void RegisterAnew(Scenario& job) {
  for (uint32_t i = 0; i < job.workers; ++i) REQUIRE(job.Worker(i, 100 + i).ok());
}

TEST_CASE("a new server process brings everybody back to the newest complete cut") {
  Scenario job({.cut_every = 10});
  job.Start();
  CompleteCut(job, 10);
  CompleteCut(job, 20);
  REQUIRE(job.Beat(0, 27).ok());
  job.Take<WriteRecord>();
  Replace(job);
  const auto records = job.Take<WriteRecord>();
  REQUIRE(!records.empty());
  CHECK(records[0].record.generation() == 1);
  CHECK(records[0].record.outcome() == v1::JOB_STARTING);
  // A process that still speaks of the previous generation is refused, and may only register.
  CHECK(absl::IsFailedPrecondition(job.Beat(0, 27).status()));
  CHECK_THAT(job.Beat(0, 27).status().ToString(), Contains("the checkpoint at clock 20"));
  CHECK(absl::IsFailedPrecondition(job.Shard(0, 30)));
  CHECK(absl::IsUnavailable(job.Worker(0, 100).status()));
  CHECK(Configured(job) == std::vector<std::string>(2, "/run/checkpoints/clock-000000020"));
  RegisterAnew(job);
  CHECK(job.generation == 1);
  CHECK(job.incarnations == std::vector<uint64_t>{1, 1});
  CHECK(job.core.Status(job.now).workers(0).clock() == 20);
  REQUIRE(job.Beat(0, 21).ok());
  CHECK(job.core.state() == v1::JOB_RUNNING);
}

TEST_CASE("that there is a checkpoint is put on record once") {
  Scenario job({.cut_every = 10});
  job.Start();
  for (const WriteRecord& write : job.Take<WriteRecord>()) {
    CHECK_FALSE(write.record.checkpointed());
  }
  CompleteCut(job, 10);
  const auto records = job.Take<WriteRecord>();
  REQUIRE(records.size() == 1);
  CHECK(records[0].record.checkpointed());
  CHECK_FALSE(records[0].awaited);
  CompleteCut(job, 20);
  CHECK(job.Take<WriteRecord>().empty());
  Replace(job);
  for (const WriteRecord& write : job.Take<WriteRecord>()) CHECK(write.record.checkpointed());
}

TEST_CASE("the record is ordered before anything that follows from the generation") {
  Scenario job(JobShape{});
  job.Start();
  job.Take<Event>();
  Replace(job);
  std::vector<Command> commands = job.core.TakeCommands();
  size_t record = commands.size(), configure = commands.size();
  for (size_t i = commands.size(); i-- > 0;) {
    if (std::holds_alternative<WriteRecord>(commands[i])) record = i;
    if (std::holds_alternative<ConfigureServer>(commands[i])) configure = i;
  }
  CHECK(record < configure);
  CHECK(configure < commands.size());
}

TEST_CASE("without a checkpoint the job begins anew") {
  Scenario job(JobShape{});
  job.Start();
  REQUIRE(job.Beat(0, 27).ok());
  Replace(job);
  CHECK(Configured(job) == std::vector<std::string>(2, ""));
  RegisterAnew(job);
  CHECK(job.core.Status(job.now).workers(0).clock() == 0);
}

TEST_CASE("a silent server is waited for, in the same process or a new one, then the job fails") {
  Scenario job(JobShape{});
  job.Start();
  const auto silent = [&](double seconds) {
    for (double left = seconds; left > 0; left -= 0.25) {
      job.now += FromSeconds(0.25);
      job.ServerBeat(0).IgnoreError();
      for (const uint32_t rank : {0u, 1u}) job.Worker(rank, 100 + rank).IgnoreError();
      job.core.Tick(job.now);
    }
  };
  silent(11);
  CHECK_THAT(job.core.Status(job.now).message(),
             Contains("waiting for server 1, whose blocks no other server has"));
  CHECK(job.Take<ConfigureServer>().empty());
  SECTION("it was only paused") {
    REQUIRE(job.ServerBeat(1).ok());
    CHECK(job.Take<ConfigureServer>().size() == 2);
    CHECK(job.core.Status(job.now).generation() == 0);
  }
  SECTION("it comes back elsewhere") {
    Replace(job);
    CHECK(Configured(job).size() == 2);
    RegisterAnew(job);
    CHECK(job.generation == 1);
  }
  SECTION("it never comes back") {
    silent(120);
    CHECK_THAT(job.core.Status(job.now).message(), Contains("server 1"));
    CHECK(job.core.state() == v1::JOB_STOPPING);
    RegisterAnew(job);
    for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 0, v1::LEAVE_STOPPED).ok());
    CHECK(job.core.state() == v1::JOB_FAILED);
    CHECK(job.Take<SaveAll>().empty());
  }
}

TEST_CASE("a cut whose manifest is being written is waited for") {
  Scenario job({.cut_every = 10});
  job.Start();
  for (uint32_t server = 0; server < 2; ++server) REQUIRE(job.Shard(server, 10).ok());
  REQUIRE(job.Take<WriteManifest>().size() == 1);
  Replace(job);
  CHECK(job.Take<ConfigureServer>().empty());
  CHECK_THAT(job.core.Status(job.now).message(), Contains("waiting for the manifest"));
  const bool durable = GENERATE(true, false);
  job.core.Answered(
      ManifestWritten{10, durable ? absl::OkStatus() : absl::UnavailableError("full")}, job.now);
  CHECK(Configured(job) ==
        std::vector<std::string>(2, durable ? "/run/checkpoints/clock-000000010" : ""));
}

TEST_CASE("a second server lost on the way begins another generation, if the first was told") {
  Scenario job(JobShape{});
  job.Start();
  Replace(job);
  REQUIRE(job.Take<ConfigureServer>().size() == 2);
  REQUIRE(job.Server(0, 2).ok());
  CHECK(Configured(job).size() == 2);
  RegisterAnew(job);
  CHECK(job.generation == 2);
}

TEST_CASE("who had finished is wanted again, until the job is sealed") {
  Scenario job({.clocks = 30, .cut_every = 10});
  job.Start();
  CompleteCut(job, 10);
  const auto leave = [&](uint32_t rank) {
    v1::LeaveRequest request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(job.incarnations[rank]);
    request.set_generation(job.generation);
    request.set_clock(30);
    request.set_waits(true);
    return job.core.Leave(request, job.now);
  };
  REQUIRE(leave(0).ok());
  REQUIRE(leave(1).ok());
  CHECK_FALSE(leave(1)->sealed());
  REQUIRE(job.Take<SaveAll>().size() == 1);
  Replace(job);
  CHECK(absl::IsFailedPrecondition(leave(0).status()));
  CHECK(Configured(job).size() == 2);
  RegisterAnew(job);
  CHECK(job.core.state() == v1::JOB_RUNNING);
  CHECK(job.core.Status(job.now).workers(1).clock() == 10);
  REQUIRE(leave(0).ok());
  REQUIRE(leave(1).ok());
  job.FinishSaving();
  CHECK(job.core.state() == v1::JOB_FINISHED);
  // The job is sealed only once its end is on record and all processes have heard of it.
  CHECK_FALSE(leave(0)->sealed());
  job.Seal();
  CHECK_FALSE(job.core.over());
  CHECK(leave(0)->sealed());
  CHECK(leave(1)->sealed());
  CHECK(job.core.over());
}

TEST_CASE("a stop that was asked for holds when the job has gone back") {
  Scenario job(JobShape{});
  job.Start();
  const bool before = GENERATE(true, false);
  if (before) job.core.StopJob("enough", job.now);
  Replace(job);
  if (!before) job.core.StopJob("enough", job.now);
  CHECK(Configured(job).size() == 2);
  RegisterAnew(job);
  CHECK(job.core.state() == v1::JOB_STOPPING);
  CHECK(job.Beat(0, 0)->stop_requested());
}

TEST_CASE("parts of a cut of before are not put together with those of after") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_ASYNC, .cut_every = 10});
  job.Start();
  REQUIRE(job.Shard(0, 10).ok());
  Replace(job);
  CHECK(Configured(job).size() == 2);
  RegisterAnew(job);
  REQUIRE(job.Shard(1, 10).ok());
  CHECK(job.Take<WriteManifest>().empty());
  REQUIRE(job.Shard(0, 10).ok());
  CHECK(job.Take<WriteManifest>().size() == 1);
}

TEST_CASE("ranks that are lost while the job goes back hold nobody up afterwards") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_BOUNDED});
  job.Start();
  job.Pass(11, {0});
  CHECK(job.Take<SetLive>() == std::vector<SetLive>{{1, false}});
  Replace(job);
  job.Take<ConfigureServer>();
  CHECK(job.Take<SetLive>().empty());
  job.Pass(1, {});
  REQUIRE(job.Server(1, 3).ok());
  CHECK(Configured(job).size() == 2);
  CHECK(job.Take<SetLive>() == std::vector<SetLive>{{1, false}});
}

TEST_CASE("a job that fails already is not begun again") {
  Scenario job(JobShape{});
  job.Start();
  REQUIRE(job.Leave(1, 3, v1::LEAVE_FAILED, "diverged").ok());
  CHECK(absl::IsUnavailable(job.Server(1, 2).status()));
  CHECK_THAT(job.core.Status(job.now).message(), Contains("diverged"));
  CHECK(job.Beat(0, 3)->stop_at() == 0);
  REQUIRE(job.Leave(0, 3, v1::LEAVE_STOPPED).ok());
  job.Seal();
  CHECK(absl::IsFailedPrecondition(job.Server(1, 2).status()));
}

TEST_CASE("what a worker that was behind the cut does again is recorded again") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_ASYNC, .cut_every = 10});
  job.Start();
  const auto step = [&](uint64_t clock) {
    v1::HeartbeatRequest request;
    request.set_job(kJob);
    request.set_incarnation(job.incarnations.at(0));
    request.set_clock(clock);
    request.set_generation(job.generation);
    request.add_steps()->set_clock(clock);
    REQUIRE(job.core.Heartbeat(request, job.now).ok());
    return job.Take<StepRecord>().size();
  };
  CHECK(step(7) == 1);
  CompleteCut(job, 10);
  Replace(job);
  Configured(job);
  RegisterAnew(job);
  // Suppose that the cut has the worker's contributions up to clock 5: the cut's mean is 10.
  CHECK(step(6) == 1);
  CHECK(step(6) == 0);
}

}  // namespace
}  // namespace leeway::going_back
