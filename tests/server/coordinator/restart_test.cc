// A coordinator after one that was killed: what it may go on with, and a stop that comes early.
#include "tests/catch.h"
#include "tests/server/coordinator/scenario.h"

namespace leeway {
namespace {

// With replicas, all synced; as the record of a coordinator says that was killed.
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
  // So that what server 1 holds cannot be done without.
  options.before->mutable_placement()->mutable_shards(1)->set_synced(false);
  Scenario job(options);
  REQUIRE(Holder(job, 0, 1).ok());
  REQUIRE(Holder(job, 1, 9).ok());
  Workers(job);
  REQUIRE(job.Take<ConfigureServer>().at(0).request.generation() == 1);
  // The one that was meant all the time.
  REQUIRE(Holder(job, 1, 1).ok());
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    CHECK(command.request.generation() == 1);
    CHECK(command.request.load());
  }
}

TEST_CASE("a stop while a killed coordinator's job is taken up waits until it can be saved") {
  Scenario job(After(TestOptions(JobShape{})));
  REQUIRE(job.Server(0).ok());
  job.core.StopJob("enough", job.now);
  CHECK(job.core.state() == v1::JOB_STARTING);
  // Nobody has been told of another generation.
  const auto records = job.Take<WriteRecord>();
  REQUIRE(records.size() == 1);
  CHECK(records[0].record.generation() == 0);
  CHECK(records[0].record.stop_reason() == "enough");
  CHECK(records[0].record.outcome() == v1::JOB_STARTING);
  SECTION("it runs, and stops with a last cut") {
    REQUIRE(job.Server(1).ok());
    Workers(job);
    for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
      job.core.ConfigureDone(command.server, command.round, absl::OkStatus(), job.now);
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

}  // namespace
}  // namespace leeway
