// Checkpoints, and what they contain about leased data.
#include "server/coordinator/core/checkpoints.h"

#include "server/coordinator/core/data_leases.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"
#include "tests/server/coordinator/core/taken.h"

namespace leeway::checkpoints {
namespace {

using Catch::Matchers::Contains;

constexpr Time kNow = Time(std::chrono::seconds(1000));

CoordinatorOptions Leased() {
  CoordinatorOptions options = TestOptions({.mode = v1::CONSISTENCY_MODE_ASYNC, .clocks = 4});
  options.job.mutable_data()->set_assignment(v1::ASSIGNMENT_LEASED);
  options.job.mutable_limits()->set_checkpoint_seconds(60);
  return options;
}

// Two shards, and two ranks that are both running.
struct Cuts {
  explicit Cuts(CoordinatorOptions options = Leased()) : facts(std::move(options)) {
    for (uint32_t i = 0; i < 2; ++i) {
      REQUIRE(ranks.Claim(i, {"host", i, i}, false, kNow).ok());
    }
    cuts.Expect(2, false);
  }
  absl::Status Part(uint32_t shard, uint64_t clock, const std::string& name) {
    return cuts.AddShard(shard, clock, TestFile(name), kNow);
  }

  const JobFacts facts;
  Commands commands;
  Membership ranks{2, 0, std::chrono::seconds(10)};
  ServerFleet fleet{facts, commands};
  ShardAssignment shards{facts, fleet, commands};
  Checkpoints cuts{facts, ranks, shards, commands};
};

TEST_CASE("checkpoints: a whole cut's manifest names its parts, and is the newest once durable") {
  Cuts of;
  REQUIRE(of.Part(0, 5, "a").ok());
  CHECK_FALSE(of.cuts.TakeWhole(false));
  REQUIRE(of.Part(1, 5, "b").ok());
  const auto parts = of.cuts.TakeWhole(false);
  REQUIRE(parts);
  v1::JobLength length;
  length.set_first_step(9);
  const WriteManifest write = of.cuts.ManifestOf(*parts, TestSchema(), length);
  CHECK(write.manifest.clock() == 5);
  CHECK(write.manifest.job_id() == kJob);
  CHECK(write.manifest.shards_size() == 2);
  CHECK(write.manifest.length().first_step() == 9);
  CHECK(write.adopt.empty());
  of.cuts.Written(5, absl::OkStatus());
  CHECK(of.cuts.newest() == 5);
  CHECK(TakenEvents(of.commands) == Names{"checkpoint"});
}

TEST_CASE(
    "checkpoints: one that fails says so once, and one that takes too long with what it lacks") {
  Cuts of;
  const absl::Status full = absl::UnavailableError("disk full");
  CHECK(of.cuts.AddShard(0, 5, full, kNow).ok());
  CHECK(of.cuts.AddShard(1, 5, full, kNow).ok());
  auto events = Taken<Event>(of.commands);
  REQUIRE(events.size() == 1);
  CHECK(events[0].message == "disk full");
  REQUIRE(of.Part(0, 6, "a").ok());
  of.cuts.Expire(kNow + std::chrono::seconds(61), false);
  events = Taken<Event>(of.commands);
  REQUIRE(events.size() == 1);
  CHECK(events[0].message == "not complete in time; missing: shard 1 (server 1)");
}

TEST_CASE("checkpoints: of the last one the answers to the latest question count") {
  Cuts of;
  of.cuts.SetLast(7);
  of.cuts.BeginLast(3, kNow);
  of.cuts.AskAgain(3, kNow);
  const auto asked = Taken<SaveAll>(of.commands);
  REQUIRE(asked.size() == 2);
  CHECK(asked[1].clock == 7);
  CHECK(asked[1].generation == 3);
  CHECK(asked[1].deadline == kNow + std::chrono::seconds(60));
  CHECK(asked[1].owners == of.shards.Owners());
  CHECK_FALSE(of.cuts.IsOfLast(asked[0].round, 7));
  CHECK(of.cuts.IsOfLast(asked[1].round, 7));
  CHECK_FALSE(of.cuts.IsOfLast(asked[1].round, 6));
}

TEST_CASE("checkpoints: the last one has failed with a part, its time, or when all is broken off") {
  Cuts of;
  of.cuts.SetLast(7);
  of.cuts.BeginLast(0, kNow);
  CHECK_FALSE(of.cuts.HaveLast());
  CHECK_FALSE(of.cuts.LastFailed(false, kNow));
  CHECK(of.cuts.LastFailed(true, kNow));
  CHECK_THAT(*of.cuts.LastFailed(false, kNow + std::chrono::seconds(60)),
             Contains("missing: shard 0 (server 0), shard 1 (server 1)"));
  REQUIRE(of.cuts.AddShard(0, 7, absl::UnavailableError("disk full"), kNow).ok());
  CHECK_THAT(*of.cuts.LastFailed(false, kNow), Contains("disk full"));
}

TEST_CASE("checkpoints: where ranks stand for certain is the newest cut in sync mode alone") {
  CoordinatorOptions options = TestOptions({});
  options.resumed.emplace();
  options.resumed->manifest.set_clock(9);
  CHECK(Cuts(options).cuts.CertainClock() == 9);
  options.job.mutable_consistency()->set_mode(v1::CONSISTENCY_MODE_ASYNC);
  CHECK(Cuts(options).cuts.CertainClock() == 0);
}

// ---- leased data

struct Leases {
  explicit Leases(CoordinatorOptions options = Leased()) : facts(std::move(options)) {}
  absl::Status Open() {
    v1::RegisterWorkerRequest request;
    request.set_batches_per_epoch(4);
    leases.Take(request);
    v1::JobLength length;
    length.set_steps_per_clock(1);
    length.set_steps_per_epoch(4);
    length.set_steps(4);
    length.set_clocks(4);
    length.set_total_clocks(8);
    return leases.Open(length, 0);
  }
  v1::LeaseDataReply Lease(uint32_t rank, uint64_t want) {
    v1::LeaseDataRequest request;
    request.set_rank(rank);
    request.set_want(want);
    return leases.Lease(request, 2, true);
  }

  const JobFacts facts;
  Commands commands;
  DataLeases leases{facts, commands};
};

TEST_CASE("data leases: where data is not leased nothing is open, and nobody is asked") {
  Leases of(TestOptions({}));
  REQUIRE(of.Open().ok());
  CHECK_FALSE(of.leases.open());
  CHECK_FALSE(of.leases.by_batches());
  CHECK(of.leases.Check({}, "worker 0").ok());
  CHECK(of.leases.LastBatchesMessage().empty());
  of.leases.TakeBack(0);
  v1::CheckpointManifest manifest;
  of.leases.AddTo(1, {}, manifest);
  CHECK_FALSE(manifest.has_data());
}

TEST_CASE("data leases: a worker says how many batches make a pass, as the others do") {
  Leases of;
  v1::RegisterWorkerRequest request;
  CHECK(absl::IsInvalidArgument(of.leases.Check(request, "worker 0")));
  v1::JobLength length;
  CHECK(absl::IsFailedPrecondition(of.leases.Open(length, 0)));
  REQUIRE(of.Open().ok());
  request.set_batches_per_epoch(4);
  CHECK(of.leases.Check(request, "worker 1").ok());
  request.set_batches_per_epoch(5);
  CHECK(absl::IsFailedPrecondition(of.leases.Check(request, "worker 1")));
}

TEST_CASE("data leases: a lost rank's batches are others' to do, and an epoch's end is told") {
  Leases of;
  REQUIRE(of.Open().ok());
  const v1::LeaseDataReply held = of.Lease(0, 2);
  REQUIRE(held.held_size() == 1);
  CHECK(held.held(0).first() == 0);
  of.leases.TakeBack(0);
  // The worker gets one share at a time.
  CHECK(of.Lease(1, 4).held(0).first() == 0);
  while (of.Lease(1, 4).held(0).count() < 4) {
  }
  v1::LeaseDataRequest done;
  done.set_rank(1);
  done.add_done()->set_count(4);
  of.commands.Take();
  of.leases.Lease(done, 2, true);
  CHECK(TakenEvents(of.commands) == Names{"epoch_done"});
  v1::JobStatus status;
  of.leases.Fill(status);
  CHECK(status.data().done() == 4);
  CHECK(status.data().batches_per_epoch() == 4);
}

TEST_CASE("data leases: after going back only what the newest durable cut has is done") {
  Leases of;
  REQUIRE(of.Open().ok());
  of.Lease(0, 4);
  v1::LeaseDataRequest done;
  done.add_done()->set_count(1);
  of.leases.Lease(done, 2, true);
  v1::SavedShard shard;
  shard.add_clocks(1);
  shard.add_clocks(0);
  v1::CheckpointManifest durable, lost;
  of.leases.AddTo(1, {shard}, durable);
  CHECK(durable.data().batches_per_epoch() == 4);
  of.leases.Written(1, true);
  done.mutable_done(0)->set_first(1);
  done.mutable_done(0)->set_clock(1);
  of.leases.Lease(done, 2, true);
  of.leases.AddTo(2, {shard}, lost);
  of.leases.Written(2, false);
  REQUIRE(of.leases.Restore(1).ok());
  v1::JobStatus status;
  of.leases.Fill(status);
  CHECK(status.data().done() == 1);
}

}  // namespace
}  // namespace leeway::checkpoints
