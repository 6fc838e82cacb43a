// Servers are added and removed while the job trains.
#include <algorithm>

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::resize {
namespace {

CoordinatorOptions Resizable(uint32_t servers, uint32_t shards, uint32_t replicas = 1) {
  CoordinatorOptions options = TestOptions({.servers = servers, .cut_every = 10});
  options.job.mutable_servers()->set_shards(shards);
  options.job.mutable_servers()->set_replicas(replicas);
  return options;
}

absl::StatusOr<v1::ResizeServersReply> Resize(Scenario& job, uint32_t servers) {
  v1::ResizeServersRequest request;
  request.set_servers(servers);
  // The servers that send the test's heartbeats.
  job.servers = std::max(job.servers, servers);
  job.nonces.resize(job.servers, 1);
  return job.core.ResizeServers(request, job.now);
}

// The placement on record, and whether every shard in it was reported as synced.
struct Recorded {
  v1::Placement placement;
  v1::CoordinatorRecord record;
};

void TakeRecord(Scenario& job, Recorded& recorded) {
  for (const WriteRecord& write : job.Take<WriteRecord>()) recorded.record = write.record;
  if (recorded.record.has_placement()) recorded.placement = recorded.record.placement();
}

// Every server does what it is told; the owners report the replicas in `filled` as synced.
void Step(Scenario& job, Recorded& recorded, const std::set<uint32_t>& filled) {
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  TakeRecord(job, recorded);
  for (int shard = 0; shard < recorded.placement.shards_size(); ++shard) {
    const v1::ShardPlace place = recorded.placement.shards(shard);
    if (!place.has_replica() || filled.count(place.replica()) == 0) continue;
    v1::ServerHeartbeatRequest request;
    request.set_job(kJob);
    request.set_index(place.owner());
    request.set_nonce(job.nonces[place.owner()]);
    request.set_generation(job.generation);
    request.add_synced()->set_shard(static_cast<uint32_t>(shard));
    request.mutable_synced(0)->set_since_epoch(place.since_epoch());
    job.core.ServerHeartbeat(request, job.now).IgnoreError();
  }
  job.core.Tick(job.now);
}

Recorded Settle(Scenario& job, const std::set<uint32_t>& filled = {0, 1, 2, 3}) {
  Recorded recorded;
  for (int i = 0; i < 30; ++i) Step(job, recorded, filled);
  return recorded;
}

std::vector<uint32_t> Owners(const v1::Placement& placement) {
  std::vector<uint32_t> owners;
  for (const auto& place : placement.shards()) owners.push_back(place.owner());
  return owners;
}

using Places = std::vector<uint32_t>;

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST_CASE("a server that is asked for is filled and takes its shards over, and nobody goes back") {
  const uint32_t replicas = GENERATE(1u, 2u);
  Scenario job(Resizable(2, 6, replicas));
  job.Start();
  Settle(job);
  REQUIRE(Resize(job, 3)->before() == 2);
  CHECK(Has(job.EventNames(), "resizing"));
  CHECK(job.core.Status(job.now).message().find("waiting for server 2") != std::string::npos);
  REQUIRE(job.Server(2).ok());
  const Recorded recorded = Settle(job);
  CHECK(Owners(recorded.placement) == Places{0, 1, 2, 0, 1, 2});
  CHECK(recorded.placement.shards(1).has_replica() == (replicas > 1));
  if (replicas > 1) CHECK(recorded.placement.shards(1).replica() == 2);
  CHECK(recorded.record.generation() == 0);
  CHECK(recorded.record.servers() == 3);
  CHECK(Has(job.EventNames(), "resized"));
  const v1::JobStatus status = job.core.Status(job.now);
  CHECK(status.servers_wanted() == 3);
  CHECK(status.shards_to_move() == 0);
  CHECK(status.message().empty());
}

TEST_CASE(
    "who hands a shard over hears of it before anybody else does, and only once it is synced") {
  Scenario job(Resizable(1, 2));
  job.Start();
  Settle(job);
  REQUIRE(Resize(job, 2).ok());
  REQUIRE(job.Server(1).ok());
  Recorded recorded;
  for (int i = 0; i < 5; ++i) Step(job, recorded, {});
  CHECK(Owners(recorded.placement) == Places{0, 0});
  CHECK(recorded.placement.shards(1).replica() == 1);
  Step(job, recorded, {1});
  const auto first = job.Take<ConfigureServer>();
  REQUIRE(first.size() == 1);
  CHECK(first[0].server == 0);
  CHECK(Owners(first[0].request.placement()) == Places{0, 1});
  CHECK_FALSE(first[0].request.placement().shards(1).has_replica());
  job.core.Answered(ConfigureDone{0, first[0].round, absl::OkStatus()}, job.now);
  const auto then = job.Take<ConfigureServer>();
  REQUIRE(then.size() == 1);
  CHECK(then[0].server == 1);
}

TEST_CASE("servers that are too many hand theirs over and end, and nobody waits for them again") {
  const uint32_t replicas = GENERATE(1u, 2u);
  const uint32_t left = replicas;
  Scenario job(Resizable(3, 3, replicas));
  job.Start();
  Settle(job);
  REQUIRE(Resize(job, left).ok());
  const Recorded recorded = Settle(job);
  CHECK(Owners(recorded.placement) == (left == 1 ? Places{0, 0, 0} : Places{0, 1, 0}));
  const auto events = job.EventNames();
  CHECK(std::count(events.begin(), events.end(), "server_removed") == 3 - left);
  for (uint32_t index = left; index < 3; ++index) {
    CHECK(absl::IsAlreadyExists(job.ServerBeat(index)));
    CHECK(absl::IsAlreadyExists(job.Server(index, 9).status()));
    CHECK(job.core.Status(job.now).servers(static_cast<int>(index)).state() == "removed");
  }
  // Nobody holds their leases.
  for (double passed = 0; passed < 30; passed += 0.25) {
    job.now += FromSeconds(0.25);
    for (uint32_t index = 0; index < left; ++index) REQUIRE(job.ServerBeat(index).ok());
    for (const uint32_t rank : {0u, 1u}) job.Beat(rank).IgnoreError();
    job.core.Tick(job.now);
  }
  CHECK_FALSE(Has(job.EventNames(), "server_lost"));
  // And back to three servers.
  REQUIRE(Resize(job, 3).ok());
  REQUIRE(job.Server(1, left == 1 ? 10 : 1).ok());
  REQUIRE(job.Server(2, 10).ok());
  CHECK(Owners(Settle(job).placement) == Places{0, 1, 2});
}

TEST_CASE("a number of servers that the job cannot have, or cannot have now, is refused") {
  Scenario job(Resizable(2, 4, 2));
  CHECK(absl::IsFailedPrecondition(Resize(job, 3).status()));
  job.Start();
  CHECK(absl::IsInvalidArgument(Resize(job, 1).status()));
  CHECK(absl::IsInvalidArgument(Resize(job, 5).status()));
  CHECK(absl::IsInvalidArgument(Resize(job, 0).status()));
  CHECK(absl::IsInvalidArgument(job.Server(4).status()));
  // Server 3 waits until it is asked for.
  CHECK(absl::IsUnavailable(job.Server(3).status()));
  REQUIRE(Resize(job, 4).ok());
  CHECK(job.Server(3).ok());
  job.core.StopJob("enough", job.now);
  CHECK(absl::IsFailedPrecondition(Resize(job, 2).status()));
}

TEST_CASE("who is killed while it is being filled is dropped, and filled when it comes again") {
  Scenario job(Resizable(1, 2));
  job.Start();
  Settle(job);
  REQUIRE(Resize(job, 2).ok());
  REQUIRE(job.Server(1).ok());
  Recorded recorded;
  for (int i = 0; i < 5; ++i) Step(job, recorded, {});
  REQUIRE(recorded.placement.shards(1).replica() == 1);
  REQUIRE(job.Server(1, 2).ok());
  recorded = Settle(job);
  CHECK(recorded.record.generation() == 0);
  CHECK(Owners(recorded.placement) == Places{0, 1});
}

TEST_CASE(
    "who is killed with one holder's blocks takes the job back, and it goes on with the rest") {
  Scenario job(Resizable(2, 4));
  job.Start();
  Settle(job);
  // A third server is asked for, and never comes.
  REQUIRE(Resize(job, 3).ok());
  job.Take<ConfigureServer>();
  REQUIRE(job.Server(1, 2).ok());
  CHECK(absl::IsUnavailable(Resize(job, 4).status()));
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].request.generation() == 1);
  CHECK(Owners(commands[0].request.placement()) == Places{0, 1, 0, 1});
  for (const ConfigureServer& command : commands) {
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  CHECK(Has(job.EventNames(), "went_back"));
  // Now it comes.
  job.generation = 1;
  REQUIRE(job.Server(2).ok());
  CHECK(Owners(Settle(job).placement) == Places{0, 1, 2, 0});
}

TEST_CASE("who is killed when another has all of its blocks is not missed") {
  Scenario job(Resizable(2, 2));
  job.Start();
  Settle(job);
  REQUIRE(Resize(job, 1).ok());
  Recorded recorded;
  Step(job, recorded, {});
  REQUIRE(recorded.placement.shards(1).replica() == 0);
  // The replica is synced, but its owner has not heard that it is to hand over.
  Step(job, recorded, {0});
  job.Take<ConfigureServer>();
  CHECK(absl::IsAlreadyExists(job.Server(1, 2).status()));
  recorded = Settle(job);
  CHECK(recorded.record.generation() == 0);
  CHECK(Owners(recorded.placement) == Places{0, 0});
  CHECK(job.core.Status(job.now).servers(1).state() == "removed");
}

TEST_CASE("what goes back goes back without the servers that are too many") {
  Scenario job(Resizable(3, 3));
  job.Start();
  Settle(job);
  REQUIRE(Resize(job, 2).ok());
  job.Take<ConfigureServer>();
  REQUIRE(job.Server(0, 2).ok());
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(Owners(commands[0].request.placement()) == Places{0, 1, 0});
  CHECK(absl::IsAlreadyExists(job.ServerBeat(2)));
}

TEST_CASE("nothing changes hands once the last checkpoint is being written") {
  Scenario job(Resizable(1, 2));
  job.Start();
  Settle(job);
  REQUIRE(Resize(job, 2).ok());
  REQUIRE(job.Server(1).ok());
  Recorded recorded;
  for (int i = 0; i < 5; ++i) Step(job, recorded, {});
  REQUIRE(recorded.placement.shards(1).replica() == 1);
  job.core.StopJob("enough", job.now);
  REQUIRE(*job.StopAt(0, 7) == 8);
  for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 8, v1::LEAVE_STOPPED).ok());
  const auto save = job.Take<SaveAll>();
  REQUIRE(save.size() == 1);
  CHECK(save[0].owners == Places{0, 0});
  Step(job, recorded, {1});
  CHECK(Owners(recorded.placement) == Places{0, 0});
}

TEST_CASE("a coordinator that was started again goes on with the number that was asked for") {
  const uint32_t replicas = GENERATE(1u, 2u);
  CoordinatorOptions options = Resizable(2, 4, replicas);
  Recorded recorded;
  {
    Scenario before(options);
    before.Start();
    Settle(before);
    REQUIRE(Resize(before, 4).ok());
    REQUIRE(before.Server(2).ok());
    recorded = Settle(before);
  }
  REQUIRE(recorded.record.servers() == 4);
  options.before = recorded.record;
  options.generation = recorded.record.generation() + 1;
  options.incarnation_base = 1000;
  Scenario job(options);
  job.servers = 3;
  REQUIRE(job.Server(0, 2).ok());
  REQUIRE(job.Server(1, 1).ok());
  for (uint32_t rank : {0u, 1u}) job.Worker(rank, 100 + rank).IgnoreError();
  // Server 2 has been there; server 3 has never come.
  CHECK(job.Take<ConfigureServer>().empty());
  REQUIRE(job.Server(2, 1).ok());
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 3);
  CHECK(commands[0].request.load());
  CHECK(Owners(commands[0].request.placement()) == Places{0, 1, 2, 0});
  CHECK(job.core.Status(job.now).servers_wanted() == 4);
}

TEST_CASE(
    "who is too many and holds blocks is waited for by a coordinator that was started again") {
  CoordinatorOptions options = Resizable(3, 3, 2);
  Recorded recorded;
  {
    Scenario before(options);
    before.Start();
    recorded = Settle(before);
  }
  REQUIRE(recorded.placement.shards(2).owner() == 2);
  // The coordinator was killed as soon as that was asked for.
  recorded.record.set_servers(2);
  options.before = recorded.record;
  options.generation = recorded.record.generation() + 1;
  options.incarnation_base = 1000;
  Scenario job(options);
  const auto back = [&job](uint32_t index) {
    v1::RegisterServerRequest request;
    *request.mutable_build() = ThisBuild();
    request.set_index(index);
    request.set_address("server" + std::to_string(index) + ":1");
    request.set_nonce(1);
    request.set_job(kJob);
    request.set_held_generation(0);
    return job.core.RegisterServer(request, job.now).ok();
  };
  REQUIRE(job.Server(0, 2).ok());
  REQUIRE(back(1));
  for (uint32_t rank : {0u, 1u}) job.Worker(rank, 100 + rank).IgnoreError();
  CHECK(job.Take<ConfigureServer>().empty());
  CHECK(job.core.Status(job.now).message().starts_with("waiting for server 2 to register"));
  const bool comes = GENERATE(true, false);
  if (comes) REQUIRE(back(2));
  for (double passed = 0; passed < 11; passed += 0.25) {
    job.now += FromSeconds(0.25);
    for (uint32_t index = 0; index < 3; ++index) {
      if (index < 2 || comes) job.ServerBeat(index).IgnoreError();
    }
    for (uint32_t rank : {0u, 1u}) job.Worker(rank, 100 + rank).IgnoreError();
    job.core.Tick(job.now);
  }
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE_FALSE(commands.empty());
  // If the server comes with its blocks the job continues where it was; otherwise it goes back.
  CHECK(commands[0].request.load() == !comes);
}

}  // namespace
}  // namespace leeway::resize
