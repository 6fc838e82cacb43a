// A shard changes its owner while contributions are held: the new owner has none of them.
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::handover {
namespace {

using Ranks = std::vector<uint32_t>;

// Three workers and two servers with replicas. The job does not wait for lost workers.
class Handover {
 public:
  Handover() : job(Options()) {
    job.Start();
    Sync();
  }

  void Held(uint32_t shard, uint64_t clock, const Ranks& ranks, const Ranks& refused = {}) {
    v1::ContributionsHeldRequest request;
    request.set_job(kJob);
    request.set_generation(job.generation);
    request.set_index(shard);
    request.set_clock(clock);
    request.set_epoch(epochs_[shard]);
    request.mutable_ranks()->Add(ranks.begin(), ranks.end());
    request.mutable_refused()->Add(refused.begin(), refused.end());
    REQUIRE(job.core.ContributionsHeld(request, job.now).ok());
  }
  void HeldByAll(uint64_t clock, const Ranks& ranks) {
    for (const uint32_t shard : {0u, 1u}) Held(shard, clock, ranks);
  }
  std::vector<Ranks> Sets() {
    std::vector<Ranks> sets;
    for (const CommitSet& set : job.Take<CommitSet>()) sets.push_back(set.ranks);
    return sets;
  }
  // Server 1 was killed: server 0 owns shard 1 now, and reports so from now on unless it is `late`.
  void LoseServer1(bool late = false) {
    REQUIRE(job.Server(1, 2).ok());
    const uint64_t epoch = job.Take<ConfigureServer>().at(0).request.placement().epoch();
    if (!late) epochs_[1] = epoch;
  }
  // Worker 2 falls silent.
  void LoseWorker2() { job.Pass(11, {0, 1}); }
  bool WentBack() {
    for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
      if (command.request.generation() == 1) return true;
    }
    return false;
  }

 private:
  static CoordinatorOptions Options() {
    CoordinatorOptions options = TestOptions({.workers = 3});
    options.job.mutable_servers()->set_replicas(2);
    options.job.mutable_servers()->set_block_bytes(64);
    options.job.mutable_workers()->set_on_worker_loss(v1::WORKER_LOSS_CONTINUE);
    return options;
  }
  void Sync() {
    const v1::Placement placement = job.Take<WriteRecord>().back().record.placement();
    for (uint32_t shard = 0; shard < 2; ++shard) {
      v1::ServerHeartbeatRequest request;
      request.set_job(kJob);
      request.set_index(shard);
      request.set_nonce(1);
      request.add_synced()->set_shard(shard);
      request.mutable_synced(0)->set_since_epoch(
          placement.shards(static_cast<int>(shard)).since_epoch());
      REQUIRE(job.core.ServerHeartbeat(request, job.now).ok());
    }
    job.Take<WriteRecord>();
    job.Take<ConfigureServer>();
  }

 public:
  Scenario job;

 private:
  // By shard: the epoch in which its owner became its owner.
  uint64_t epochs_[2] = {1, 1};
};

TEST_CASE("what a lost server held of an open clock is not counted on: its heir tells anew") {
  Handover world;
  world.Held(1, 0, {0, 1, 2});
  const bool late = GENERATE(false, true);
  world.LoseServer1(late);
  // The report was on its way when its sender died.
  if (late) world.Held(1, 0, {0, 1, 2});
  world.Held(0, 0, {0, 1, 2});
  CHECK(world.Sets().empty());
  world.LoseWorker2();
  CHECK(world.Sets().empty());
}

TEST_CASE("an heir's report makes the set, without who died with the server") {
  Handover world;
  world.Held(1, 0, {0, 1, 2});
  world.LoseServer1();
  world.Held(0, 0, {0, 1, 2});
  world.Held(1, 0, {0, 1});
  CHECK(world.Sets().empty());
  world.LoseWorker2();
  CHECK(world.Sets() == std::vector<Ranks>{{0, 1}});
  CHECK_FALSE(world.WentBack());
}

TEST_CASE("a set that names who died with a server of it takes the job back") {
  Handover world;
  world.HeldByAll(0, {0, 1, 2});
  CHECK(world.Sets() == std::vector<Ranks>{{0, 1, 2}});
  SECTION("the server first") {
    world.LoseServer1();
    CHECK_FALSE(world.WentBack());
    world.LoseWorker2();
    CHECK(world.WentBack());
  }
  SECTION("the worker first") {
    world.LoseWorker2();
    CHECK_FALSE(world.WentBack());
    REQUIRE(world.job.Server(1, 2).ok());
    CHECK(world.WentBack());
  }
  SECTION("not if somebody has what came of the set") {
    REQUIRE(world.job.Beat(0, 1).ok());
    world.LoseServer1();
    world.LoseWorker2();
    CHECK_FALSE(world.WentBack());
  }
  SECTION("not once another set has been made since") {
    world.LoseServer1();
    world.HeldByAll(1, {0, 1, 2});
    world.LoseWorker2();
    CHECK_FALSE(world.WentBack());
  }
}

// The worker may send better values, unless it is lost.
TEST_CASE("a set that names who was refused for its values and is lost takes the job back") {
  Handover world;
  world.HeldByAll(0, {0, 1, 2});
  SECTION("refused first") {
    world.Held(1, 1, {}, {2});
    CHECK_FALSE(world.WentBack());
    world.LoseWorker2();
    CHECK(world.WentBack());
  }
  SECTION("lost first") {
    world.LoseWorker2();
    world.Held(1, 1, {}, {2});
    world.job.Pass(1, {0, 1});
    CHECK(world.WentBack());
  }
  SECTION("not for a refusal of a clock before the latest") {
    world.HeldByAll(1, {0, 1, 2});
    world.Held(1, 1, {}, {2});
    world.LoseWorker2();
    CHECK_FALSE(world.WentBack());
  }
}

// The refusal may come too late: the worker that could have sent better values is lost, all others
// have left, and the servers are asked for the last cut.
TEST_CASE("a shard that is behind the others at the last cut takes the job back") {
  Handover world;
  world.HeldByAll(0, {0, 1, 2});
  world.job.Pass(11, {1, 2});
  for (const uint32_t rank : {1u, 2u}) REQUIRE(world.job.Beat(rank, 1).ok());
  world.HeldByAll(1, {1, 2});
  CHECK(world.Sets() == std::vector<Ranks>{{0, 1, 2}, {1, 2}});
  world.job.core.StopJob("enough", world.job.now);
  REQUIRE(world.job.Worker(0, 300).ok());
  world.job.Leave(0, 2, v1::LEAVE_STOPPED).IgnoreError();
  // Both other workers fall silent together, and get one more lease.
  world.job.Pass(22);
  const auto saves = world.job.Take<SaveAll>();
  REQUIRE(saves.size() == 1);
  CHECK(saves[0].clock == 2);
  const auto answer = [&](const absl::Status& status) {
    world.job.core.Answered(SaveDone{1, saves[0].round, saves[0].clock, status}, world.job.now);
  };
  SECTION("behind") {
    answer(absl::FailedPreconditionError("block 1 is at version 1, not at clock 2"));
    CHECK(world.WentBack());
  }
  SECTION("not for a disk that is full") {
    answer(absl::UnavailableError("no space left"));
    CHECK_FALSE(world.WentBack());
    CHECK(world.job.core.state() == v1::JOB_FAILED);
  }
}

// The new owner may hold less than the set, and then it would report nothing that could be answered
// with the set.
TEST_CASE("who has taken a shard over is told the latest set") {
  Handover world;
  world.HeldByAll(0, {0, 1});
  world.LoseWorker2();
  CHECK(world.Sets() == std::vector<Ranks>{{0, 1}});
  REQUIRE(world.job.Server(1, 2).ok());
  const auto given = world.job.Take<ConfigureServer>();
  REQUIRE_FALSE(given.empty());
  CHECK(world.Sets().empty());
  world.job.core.Answered(ConfigureDone{0, given.back().round, absl::OkStatus()}, world.job.now);
  CHECK(world.Sets() == std::vector<Ranks>{{0, 1}});
}

}  // namespace
}  // namespace leeway::handover
