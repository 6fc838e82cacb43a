// Leases, stops, ends.
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::run {
namespace {

using Catch::Matchers::Contains;

std::vector<SetLive> Lives(Scenario& job) { return job.Take<SetLive>(); }

TEST_CASE("a silent worker is lost after its lease, and live again with its next life") {
  const auto mode = GENERATE(v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_BOUNDED);
  Scenario job({.mode = mode});
  job.Start();
  job.Pass(9.5, {0});
  CHECK(Lives(job).empty());
  job.Pass(1, {0});
  CHECK(Lives(job) == std::vector<SetLive>{{1, false}});
  CHECK(job.core.Status(job.now).workers(1).state() == "lost");
  CHECK_THAT(job.core.Status(job.now).message(), Contains("worker 1 lost"));
  REQUIRE(job.Worker(std::nullopt, 500).ok());
  CHECK(Lives(job) == std::vector<SetLive>{{1, true}});
  CHECK(job.incarnations[1] == 2);
}

TEST_CASE("a lost worker that was only silent is live again with a heartbeat") {
  Scenario job(JobShape{});
  job.Start();
  job.Pass(11, {0});
  REQUIRE(job.Beat(1).ok());
  CHECK(Lives(job) == std::vector<SetLive>{{1, false}, {1, true}});
}

TEST_CASE("nobody is lost because the coordinator itself stood still") {
  Scenario job(JobShape{});
  job.Start();
  job.now += std::chrono::minutes(5);
  job.core.Tick(job.now);
  CHECK(Lives(job).empty());
  CHECK(job.core.state() == v1::JOB_RUNNING);
}

TEST_CASE("in sync mode the first who asks fixes the stop one clock ahead, for all") {
  Scenario job({.workers = 3});
  job.Start();
  CHECK(absl::IsFailedPrecondition(job.StopAt(0, 4).status()));
  job.core.StopJob("Ctrl-C", job.now);
  CHECK(job.Beat(2, 4)->stop_requested());
  CHECK_FALSE(job.Beat(2, 4)->has_stop_at());
  CHECK(*job.StopAt(1, 4) == 5);
  CHECK(*job.StopAt(0, 4) == 5);
  CHECK(*job.StopAt(1, 4) == 5);
  CHECK(job.Beat(2, 4)->stop_at() == 5);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    REQUIRE(job.Leave(rank, 5, v1::LEAVE_STOPPED).ok());
  }
  CHECK(Lives(job).empty());
  const auto save = job.Take<SaveAll>();
  REQUIRE(save.size() == 1);
  CHECK(save[0].clock == 5);
  CHECK(job.core.state() == v1::JOB_STOPPING);
  for (uint32_t i = 0; i < 2; ++i) job.core.Answered(SaveDone{i, 0, 5, TestFile("s")}, job.now);
  const auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].manifest.shards_size() == 2);
  job.core.Answered(ManifestWritten{5, absl::OkStatus()}, job.now);
  CHECK(job.core.state() == v1::JOB_STOPPED);
  CHECK(job.core.Status(job.now).checkpoint_clock() == 5);
  CHECK_FALSE(job.core.over());
  for (uint32_t i = 0; i < 2; ++i) job.core.Answered(ShutdownDone{i}, job.now);
  CHECK(job.core.over());
}

TEST_CASE("an old question where to stop fixes nothing") {
  Scenario job(JobShape{});
  job.Start();
  job.core.StopJob("", job.now);
  // Worker 1 has completed exchange 5, which needed worker 0's contribution.
  job.Beat(1, 6).IgnoreError();
  CHECK(absl::IsFailedPrecondition(job.StopAt(0, 4).status()));
  CHECK(*job.StopAt(0, 5) == 6);
}

TEST_CASE("a stop near the end is the end") {
  Scenario job({.clocks = 100});
  job.Start();
  job.core.StopJob("", job.now);
  CHECK(*job.StopAt(0, 100) == 100);
  for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 100, v1::LEAVE_STOPPED).ok());
  job.FinishSaving();
  CHECK(job.core.state() == v1::JOB_FINISHED);
}

TEST_CASE("without sync each stops where it is, and holds nobody up, the cut is at the mean") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_BOUNDED});
  job.Start();
  job.core.StopJob("", job.now);
  CHECK(*job.StopAt(0, 7) == 7);
  CHECK(*job.StopAt(1, 9) == 9);
  REQUIRE(job.Leave(0, 7, v1::LEAVE_STOPPED).ok());
  CHECK(Lives(job) == std::vector<SetLive>{{0, false}});
  REQUIRE(job.Leave(1, 9, v1::LEAVE_STOPPED).ok());
  const auto save = job.Take<SaveAll>();
  REQUIRE(save.size() == 1);
  CHECK(save[0].clock == 8);
}

TEST_CASE("in async who has no data finishes at once, and the others decide how the job ends") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_ASYNC, .clocks = 20});
  v1::RegisterWorkerRequest idle = WorkerRequest(1, 101);
  idle.set_steps_per_epoch(0);
  for (const uint32_t server : {0u, 1u}) REQUIRE(job.Server(server).ok());
  job.Worker(0, 100).IgnoreError();
  job.Remember(job.core.RegisterWorker(idle, job.now)).IgnoreError();
  job.Start();
  REQUIRE(job.Leave(1, 0, v1::LEAVE_FINISHED).ok());
  SECTION("the others make its exchanges") {
    CHECK(job.Take<SaveAll>().empty());
    REQUIRE(job.Leave(0, 40, v1::LEAVE_FINISHED).ok());
    job.FinishSaving();
    CHECK(job.core.state() == v1::JOB_FINISHED);
  }
  SECTION("a stop stops it") {
    job.core.StopJob("", job.now);
    REQUIRE(job.Leave(0, 7, v1::LEAVE_STOPPED).ok());
    job.FinishSaving();
    CHECK(job.core.state() == v1::JOB_STOPPED);
  }
  SECTION("the others fail") {
    REQUIRE(job.Leave(0, 7, v1::LEAVE_FAILED).ok());
    job.FinishSaving();
    CHECK(job.core.state() == v1::JOB_FAILED);
  }
}

TEST_CASE("when all have finished the job is saved, shut down and finished") {
  Scenario job({.clocks = 20});
  job.Start();
  REQUIRE(job.Leave(0, 20, v1::LEAVE_FINISHED).ok());
  REQUIRE(job.Leave(0, 20, v1::LEAVE_FINISHED).ok());
  CHECK(job.Take<SaveAll>().empty());
  REQUIRE(job.Leave(1, 20, v1::LEAVE_FINISHED).ok());
  // A next life stands by until the end is on record.
  const auto standing_by = job.Worker(1, 700);
  REQUIRE(standing_by.ok());
  CHECK(standing_by->left_at() == 20);
  job.FinishSaving();
  job.Seal();
  CHECK(absl::IsAlreadyExists(job.Worker(1, 701).status()));
  CHECK(job.core.over());
  CHECK(job.core.state() == v1::JOB_FINISHED);
  CHECK(job.EventNames().back() == "job_finished");
}

TEST_CASE("the end is sealed by the record that says so, not by one of before that comes late") {
  Scenario job({.clocks = 20});
  job.Start();
  const auto before = job.Take<WriteRecord>();
  REQUIRE_FALSE(before.empty());
  for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 20, v1::LEAVE_FINISHED).ok());
  job.FinishSaving();
  job.core.Answered(RecordDone{before[0].record, absl::OkStatus()}, job.now);
  // Its next life stands by.
  CHECK(job.Worker(1, 701).ok());
  job.Seal();
  CHECK(absl::IsAlreadyExists(job.Worker(1, 701).status()));
}

TEST_CASE("a record that cannot be written ends a running job") {
  Scenario job({.clocks = 20});
  job.Start();
  const auto records = job.Take<WriteRecord>();
  job.core.Answered(RecordDone{records[0].record, absl::ResourceExhaustedError("no space left")},
                    job.now);
  CHECK(job.core.state() == v1::JOB_STOPPING);
  CHECK(job.Beat(0, 3)->stop_at() == 0);
  CHECK_THAT(job.core.Status(job.now).message(), Contains("no space left"));
}

TEST_CASE("what somebody says is kept in bounds, and in whole characters") {
  Scenario job({.clocks = 20});
  job.Start();
  std::string reason = "x";
  while (reason.size() < 3000) reason += "\xc3\xa9";
  job.core.StopJob(reason, job.now);
  const std::string kept = job.Take<WriteRecord>().back().record.stop_reason();
  CHECK(kept == reason.substr(0, 999) + "...");
  REQUIRE(job.Leave(0, 3, v1::LEAVE_FAILED, reason).ok());
  CHECK(job.core.Status(job.now).message().size() < 1100);
}

TEST_CASE("nobody has finished before the last clock") {
  Scenario job({.clocks = 20});
  job.Start();
  CHECK(absl::IsInvalidArgument(job.Leave(0, 19, v1::LEAVE_FINISHED)));
  CHECK(absl::IsInvalidArgument(job.Leave(0, 21, v1::LEAVE_FINISHED)));
  CHECK(absl::IsInvalidArgument(job.Beat(0, 21).status()));
}

TEST_CASE("a worker that fails for good fails the job, at its clock in sync mode") {
  Scenario job({.workers = 3});
  job.Start();
  REQUIRE(job.Leave(1, 6, v1::LEAVE_FAILED, "the loss is not a number").ok());
  const auto reply = job.Beat(0, 5);
  CHECK(reply->stop_requested());
  CHECK(reply->stop_at() == 6);
  for (const uint32_t rank : {0u, 2u}) REQUIRE(job.Leave(rank, 6, v1::LEAVE_STOPPED).ok());
  const auto save = job.Take<SaveAll>();
  REQUIRE(save.size() == 1);
  CHECK(save[0].clock == 6);
  job.commands.emplace_back(save[0]);
  job.FinishSaving();
  CHECK(job.core.state() == v1::JOB_FAILED);
  CHECK_THAT(job.core.Status(job.now).message(), Contains("worker 1: the loss is not a number"));
}

TEST_CASE("a worker that goes before anybody asked makes room for a new life") {
  Scenario job(JobShape{});
  job.Start();
  REQUIRE(job.Leave(1, 3, v1::LEAVE_STOPPED, "preempted").ok());
  CHECK(Lives(job) == std::vector<SetLive>{{1, false}});
  CHECK(job.core.state() == v1::JOB_RUNNING);
  CHECK(job.Worker(std::nullopt, 800)->rank() == 1);
}

TEST_CASE("a stop in sync mode waits for a lost worker's next life, then gives up") {
  Scenario job(JobShape{});
  job.Start();
  job.core.StopJob("", job.now);
  CHECK(*job.StopAt(0, 4) == 5);
  SECTION("it comes back") {
    job.Pass(20, {0});
    REQUIRE(job.Worker(1, 900).ok());
    CHECK(job.Beat(1, 4)->stop_at() == 5);
    for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 5, v1::LEAVE_STOPPED).ok());
    job.FinishSaving();
    CHECK(job.core.state() == v1::JOB_STOPPED);
  }
  SECTION("it does not") {
    job.Beat(0, 4).IgnoreError();
    job.Pass(100, {0});
    CHECK(job.Beat(0, 4)->stop_at() == 5);
    job.Pass(40, {0});
    CHECK(job.Beat(0, 4)->stop_at() == 4);
    REQUIRE(job.Leave(0, 4, v1::LEAVE_STOPPED).ok());
    job.FinishSaving();
    CHECK(job.core.state() == v1::JOB_FAILED);
    CHECK_THAT(job.core.Status(job.now).message(), Contains("worker 1 was lost"));
  }
}

TEST_CASE("without sync a stop waits for nobody who is lost") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_ASYNC});
  job.Start();
  job.core.StopJob("", job.now);
  job.Beat(0, 8).IgnoreError();
  job.Pass(11, {0});
  REQUIRE(job.Leave(0, 8, v1::LEAVE_STOPPED).ok());
  // The mean of clocks 8 and 0.
  CHECK(job.Take<SaveAll>().at(0).clock == 4);
}

TEST_CASE("without sync the last cut comes after every other, and is taken in any case") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_ASYNC, .cut_every = 10});
  job.Start();
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 10).ok());
  job.core.Answered(ManifestWritten{10, absl::OkStatus()}, job.now);
  job.core.StopJob("", job.now);
  REQUIRE(job.Leave(0, 18, v1::LEAVE_STOPPED).ok());
  REQUIRE(job.Leave(1, 2, v1::LEAVE_STOPPED).ok());
  CHECK(job.Take<SaveAll>().at(0).clock == 11);
}

TEST_CASE("a job whose workers are all lost ends by itself") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_ASYNC});
  job.Start();
  for (const uint32_t rank : {0u, 1u}) job.Beat(rank, 3).IgnoreError();
  // Both fall silent together, and get one more lease.
  job.Pass(110);
  CHECK(job.core.state() == v1::JOB_RUNNING);
  job.Pass(40);
  CHECK(job.Take<SaveAll>().at(0).clock == 3);
  CHECK_THAT(job.core.Status(job.now).message(), Contains("last checkpoint"));
  for (uint32_t i = 0; i < 2; ++i) {
    job.core.Answered(SaveDone{i, 0, 3, absl::UnavailableError("disk full")}, job.now);
  }
  CHECK(job.core.state() == v1::JOB_FAILED);
  CHECK_THAT(job.core.Status(job.now).message(), Contains("all workers were lost"));
}

TEST_CASE("a job whose last worker never came back has finished with the others") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_ASYNC, .clocks = 10});
  job.Start();
  job.Pass(12, {0});
  REQUIRE(job.Leave(0, 10, v1::LEAVE_FINISHED).ok());
  job.Pass(125);
  CHECK(job.Take<SaveAll>().at(0).clock == 5);
}

TEST_CASE("messages of another job are refused") {
  Scenario job(JobShape{});
  job.Start();
  v1::HeartbeatRequest request;
  request.set_job(1);
  request.set_incarnation(1);
  const absl::Status status = job.core.Heartbeat(request, job.now).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Contains("job 0000000000000001") && Contains("test"));
}

TEST_CASE("metrics are recorded once a clock, over repetitions and lives") {
  Scenario job(JobShape{});
  job.Start();
  v1::HeartbeatRequest request;
  request.set_job(kJob);
  request.set_incarnation(1);
  for (const uint64_t clock : {1, 2}) {
    v1::StepMetrics* metrics = request.add_steps();
    metrics->set_clock(clock);
    metrics->set_examples(64);
    metrics->set_staleness(clock);
  }
  request.add_evaluations()->set_clock(2);
  REQUIRE(job.core.Heartbeat(request, job.now).ok());
  job.now += std::chrono::seconds(1);
  REQUIRE(job.core.Heartbeat(request, job.now).ok());
  CHECK(job.Take<StepRecord>().size() == 1);
  CHECK(job.Take<EvaluationRecord>().size() == 1);
  request.mutable_steps(1)->set_clock(3);
  job.now += std::chrono::seconds(1);
  REQUIRE(job.core.Heartbeat(request, job.now).ok());
  CHECK(job.Take<StepRecord>().size() == 1);
  const v1::JobStatus status = job.core.Status(job.now);
  CHECK(status.workers(0).examples() == 192);
  CHECK(status.workers(0).samples_per_second() == Approx(32));
  CHECK(status.max_staleness() == 2);
  CHECK(status.evaluations_size() == 1);
}

}  // namespace
}  // namespace leeway::run
