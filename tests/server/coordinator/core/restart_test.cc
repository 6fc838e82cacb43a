// A coordinator after one that was killed: what it may continue with, and a stop that comes early.
#include <algorithm>
#include <vector>

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::restart {
namespace {

// The record of a killed coordinator, with replicas that are all synced.
v1::CoordinatorRecord RecordOf(const CoordinatorOptions& options) {
  Scenario before(options);
  before.Start();
  v1::CoordinatorRecord record = before.Take<WriteRecord>().back().record;
  for (v1::ShardPlace& place : *record.mutable_placement()->mutable_shards()) {
    place.set_synced(true);
  }
  return record;
}

CoordinatorOptions Replicated() {
  CoordinatorOptions options = TestOptions(JobShape{});
  options.job.mutable_servers()->set_replicas(2);
  return options;
}

CoordinatorOptions After(CoordinatorOptions options) {
  options.before = RecordOf(options);
  options.generation = options.before->generation() + 1;
  options.incarnation_base = 1000;
  return options;
}

// A server that holds blocks of generation 0, as process `nonce`.
absl::Status Holder(Scenario& job, uint32_t index, uint64_t nonce) {
  v1::RegisterServerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_index(index);
  request.set_address("server" + std::to_string(index) + ":1");
  request.set_nonce(nonce);
  request.set_held_generation(0);
  return job.core.RegisterServer(request, job.now).status();
}

void Workers(Scenario& job) {
  for (const uint32_t rank : {0u, 1u}) job.Worker(rank, 100 + rank).IgnoreError();
}

TEST_CASE("the record says which processes hold what it gives to the servers") {
  const v1::CoordinatorRecord record = RecordOf(Replicated());
  REQUIRE(record.server_nonces_size() == 2);
  CHECK(record.server_nonces(1) == 1);
}

TEST_CASE("another number of servers can be asked for when the job is under way again") {
  v1::ResizeServersRequest request;
  request.set_servers(2);
  Scenario fresh(Replicated());
  CHECK(absl::IsFailedPrecondition(fresh.core.ResizeServers(request, fresh.now).status()));
  Scenario again(After(Replicated()));
  CHECK(absl::IsUnavailable(again.core.ResizeServers(request, again.now).status()));
}

TEST_CASE("the status names the process of each place, also of a worker that is lost") {
  Scenario job(Replicated());
  CHECK(job.core.Status(job.now).workers(1).pid() == 0);
  v1::RegisterServerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_index(1);
  request.set_address("server1:1");
  request.set_nonce(1);
  request.set_pid(77);
  REQUIRE(job.core.RegisterServer(request, job.now).ok());
  job.Start();
  job.Pass(60, {0});
  const v1::JobStatus status = job.core.Status(job.now);
  CHECK(status.workers(1).state() == "lost");
  CHECK(status.workers(1).pid() == 101);
  CHECK(status.servers(1).pid() == 77);
}

TEST_CASE("the record says what auto stands for, in every one of them") {
  CoordinatorOptions options = Replicated();
  options.auto_codec.emplace().mutable_bf16();
  Scenario job(options);
  job.Start();
  const auto records = job.Take<WriteRecord>();
  REQUIRE_FALSE(records.empty());
  for (const WriteRecord& write : records) CHECK(write.record.auto_codec().has_bf16());
  CHECK_FALSE(RecordOf(Replicated()).has_auto_codec());
}

TEST_CASE("the record says what each rank computes on, and the next coordinator goes by it") {
  CoordinatorOptions options = Replicated();
  options.job.mutable_workers()->set_device("auto");
  Scenario job(options);
  for (uint32_t i = 0; i < job.servers; ++i) job.Server(i).IgnoreError();
  for (const uint32_t rank : {0u, 1u}) {
    v1::RegisterWorkerRequest request = WorkerRequest(rank, 100 + rank);
    request.set_device(rank == 0 ? "cuda" : "cpu");
    job.core.RegisterWorker(request, job.now).status().IgnoreError();
  }
  job.Carry();
  const auto records = job.Take<WriteRecord>();
  REQUIRE_FALSE(records.empty());
  const v1::CoordinatorRecord& record = records.back().record;
  REQUIRE(record.devices_size() == 2);
  CHECK(record.devices(0) == "cuda");
  CHECK(record.devices(1) == "cpu");

  options.ranks.devices.assign(record.devices().begin(), record.devices().end());
  Scenario next(options);
  v1::RegisterWorkerRequest request = WorkerRequest(0, 300);
  request.set_job_only(true);
  const auto offer = next.core.RegisterWorker(request, next.now);
  REQUIRE(offer.ok());
  REQUIRE(offer->devices_size() == 2);
  CHECK(offer->devices(0) == "cuda");
  request.set_job_only(false);
  request.set_device("cpu");
  CHECK(absl::IsFailedPrecondition(next.core.RegisterWorker(request, next.now).status()));
  // A process that takes any rank, and would get this one, is refused, too.
  request.clear_rank();
  CHECK(absl::IsFailedPrecondition(next.core.RegisterWorker(request, next.now).status()));
}

// Returns the incarnations that a coordinator with these options gives to a row of lives, newest
// last. Each life is a process of its own. A record that is not written when the coordinator dies
// was not durable.
std::vector<uint64_t> LivesOf(const CoordinatorOptions& options, int lives,
                              v1::CoordinatorRecord& record) {
  std::vector<uint64_t> given;
  Scenario job(options);
  job.keeps_records = false;
  static uint32_t pid = 1000;
  const auto seal = [&] {
    for (const WriteRecord& write : job.Take<WriteRecord>()) {
      record = write.record;
      job.core.Answered(RecordDone{write.record, absl::OkStatus()}, job.now);
    }
  };
  for (uint32_t i = 0; i < job.servers; ++i) job.Server(i, 2).IgnoreError();
  job.Worker(1, 7).IgnoreError();
  for (int life = 0; life < lives; ++life) {
    ++pid;
    // The process asks repeatedly, as a worker does; the disk is slow.
    for (int attempt = 0; attempt < 4; ++attempt) {
      const auto reply = job.Worker(0, pid);
      for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
        job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
      }
      if (reply.ok()) {
        given.push_back(reply->incarnation());
        CHECK(reply->incarnation() <= record.incarnations());
      }
      if (attempt == 2) seal();
    }
  }
  return given;
}

TEST_CASE("no two lives of a rank have one incarnation, and they rise over all coordinators") {
  CoordinatorOptions options = TestOptions(JobShape{});
  v1::CoordinatorRecord record;
  uint64_t newest = 0;
  // Enough lives to exceed what one record reserves, and no lives at all, because the coordinator
  // was killed at once.
  for (const int lives : {3, 2500, 0, 1, 40, 1200}) {
    const std::vector<uint64_t> given = LivesOf(options, lives, record);
    CHECK(given.size() >= static_cast<size_t>(lives));
    for (const uint64_t incarnation : given) CHECK(incarnation >= newest);
    CHECK(std::is_sorted(given.begin(), given.end()));
    if (lives > 0) {
      CHECK(given.front() > newest);
      newest = given.back();
    }
    options.before = record;
    options.generation = record.generation() + 1;
    options.incarnation_base = record.incarnations();
  }
}

TEST_CASE("what a process of before holds counts, and what one before it holds does not") {
  Scenario job(After(Replicated()));
  const uint64_t process = GENERATE(1, 9);
  REQUIRE(job.Server(0, 2).ok());
  REQUIRE(Holder(job, 1, process).ok());
  Workers(job);
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].request.load() == (process == 9));
  CHECK(commands[0].request.generation() == (process == 9 ? 1 : 0));
}

TEST_CASE("once servers were told of the next generation nobody goes on with the one before") {
  CoordinatorOptions options = After(Replicated());
  // So the job cannot do without what server 1 holds.
  options.before->mutable_placement()->mutable_shards(1)->set_synced(false);
  Scenario job(options);
  REQUIRE(Holder(job, 0, 1).ok());
  REQUIRE(Holder(job, 1, 9).ok());
  Workers(job);
  REQUIRE(job.Take<ConfigureServer>().at(0).request.generation() == 1);
  // The process that was meant all the time.
  REQUIRE(Holder(job, 1, 1).ok());
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    CHECK(command.request.generation() == 1);
    CHECK(command.request.load());
  }
}

// Returns the event with which the job starts under the coordinator that was started again.
Event StartedAgain(const CoordinatorOptions& options, uint64_t held_by_server_1) {
  Scenario job(options);
  REQUIRE(job.Server(0).ok());
  REQUIRE(Holder(job, 1, held_by_server_1).ok());
  Workers(job);
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  Workers(job);
  for (const Event& event : job.Take<Event>()) {
    if (event.name == "job_started") return event;
  }
  FAIL("the job does not start");
  return {};
}

TEST_CASE("a job that goes on where it is does not say that it begins at a clock") {
  const Event goes_on = StartedAgain(After(Replicated()), 1);
  CHECK(goes_on.goes_on);
  CHECK_FALSE(goes_on.clock.has_value());
  CHECK_THAT(goes_on.message, Catch::StartsWith("goes on where it is, to clock"));
}

TEST_CASE("a job that begins anew says at which clock") {
  const Event anew = StartedAgain(After(TestOptions(JobShape{})), 1);
  CHECK_FALSE(anew.goes_on);
  CHECK(anew.clock == 0);
}

TEST_CASE("a stop while a killed coordinator's job is taken up waits until it can be saved") {
  Scenario job(After(TestOptions(JobShape{})));
  REQUIRE(job.Server(0).ok());
  job.core.StopJob("enough", job.now);
  CHECK(job.core.state() == v1::JOB_STARTING);
  // No process has been told of another generation.
  const auto records = job.Take<WriteRecord>();
  REQUIRE(records.size() == 1);
  CHECK(records[0].record.generation() == 0);
  CHECK(records[0].record.stop_reason() == "enough");
  CHECK(records[0].record.outcome() == v1::JOB_STARTING);
  SECTION("it runs, and stops with a last cut") {
    REQUIRE(job.Server(1).ok());
    Workers(job);
    for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
      job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
    }
    CHECK(job.Take<WriteRecord>().back().record.stop_reason() == "enough");
    Workers(job);
    CHECK(job.core.state() == v1::JOB_STOPPING);
    for (const uint32_t rank : {0u, 1u}) {
      REQUIRE(job.Beat(rank, 7).ok());
      REQUIRE(job.Leave(rank, 7, v1::LEAVE_STOPPED).ok());
    }
    job.FinishSaving();
    CHECK(job.core.Status(job.now).checkpoint_clock() == 7);
    CHECK(job.core.state() == v1::JOB_STOPPED);
  }
  SECTION("nobody comes") {
    job.Pass(121);
    CHECK(job.core.state() == v1::JOB_STOPPED);
  }
}

TEST_CASE("a stop on record is not put in the place of a newer one") {
  CoordinatorOptions options = After(TestOptions(JobShape{}));
  options.before->set_stop_reason("older");
  Scenario job(options);
  job.core.StopJob("newer", job.now);
  for (const uint32_t server : {0u, 1u}) REQUIRE(job.Server(server).ok());
  Workers(job);
  for (const WriteRecord& write : job.Take<WriteRecord>()) {
    CHECK(write.record.stop_reason() == "newer");
  }
}

TEST_CASE("a server of another job is not taken into this one") {
  Scenario job(JobShape{});
  v1::RegisterServerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_index(1);
  request.set_address("server1:1");
  request.set_job(kJob + 1);
  CHECK(absl::IsAlreadyExists(job.core.RegisterServer(request, job.now).status()));
  request.set_job(kJob);
  CHECK(job.core.RegisterServer(request, job.now).ok());
}

TEST_CASE("servers hear of no incarnation before it is on record") {
  Scenario job(JobShape{});
  job.keeps_records = false;
  for (const uint32_t server : {0u, 1u}) REQUIRE(job.Server(server).ok());
  for (const uint32_t rank : {0u, 1u}) job.Worker(rank, 100 + rank).IgnoreError();
  v1::ServerHeartbeatRequest beat;
  beat.set_job(kJob);
  beat.set_nonce(1);
  CHECK(job.core.ServerHeartbeat(beat, job.now)->incarnations_size() == 0);
  beat.set_wants_incarnations(true);
  const auto before = job.core.ServerHeartbeat(beat, job.now);
  REQUIRE(before->incarnations_size() == 2);
  CHECK(before->incarnations(0) == 0);
  job.Seal();
  const auto after = job.core.ServerHeartbeat(beat, job.now);
  CHECK(after->incarnations(0) == 1);
  CHECK(after->incarnations(1) == 1);
}

}  // namespace
}  // namespace leeway::restart
