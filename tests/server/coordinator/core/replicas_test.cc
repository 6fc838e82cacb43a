// A lost server whose blocks have replicas: the replicas take over at once, and the job does not go
// back.
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::replicas {
namespace {

CoordinatorOptions WithReplicas(JobShape shape = {}) {
  CoordinatorOptions options = TestOptions(shape);
  options.job.mutable_servers()->set_replicas(2);
  return options;
}

// The owners report their replicas as synced.
void Sync(Scenario& job, uint64_t generation = 0) {
  std::optional<v1::Placement> placement;
  for (const WriteRecord& record : job.Take<WriteRecord>()) placement = record.record.placement();
  REQUIRE(placement);
  for (int shard = 0; shard < placement->shards_size(); ++shard) {
    const v1::ShardPlace& place = placement->shards(shard);
    v1::ServerHeartbeatRequest request;
    request.set_job(kJob);
    request.set_index(place.owner());
    request.set_nonce(job.nonces[place.owner()]);
    request.set_generation(generation);
    request.add_synced()->set_shard(static_cast<uint32_t>(shard));
    request.mutable_synced(0)->set_since_epoch(place.since_epoch());
    REQUIRE(job.core.ServerHeartbeat(request, job.now).ok());
  }
}

TEST_CASE("a replaced server's shard goes on at its replica, in the same generation") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  CHECK(job.Take<ConfigureServer>().empty());
  REQUIRE(job.Server(1, 2).ok());
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  const v1::ConfigureRequest& request = commands[0].request;
  CHECK_FALSE(request.load());
  CHECK(request.generation() == 0);
  CHECK(request.placement().shards(1).owner() == 0);
  CHECK(request.placement().shards(0).replica() == 1);
  CHECK_FALSE(request.placement().shards(0).synced());
  // Workers go on, and hear where the blocks are now.
  v1::HeartbeatRequest beat;
  beat.set_job(kJob);
  beat.set_incarnation(1);
  beat.set_clock(3);
  const auto reply = job.core.Heartbeat(beat, job.now);
  REQUIRE(reply.ok());
  CHECK(reply->epoch() == request.placement().epoch());
  REQUIRE(reply->servers_size() == 2);
  CHECK(reply->servers(1) == "server0:1");
  beat.set_epoch(reply->epoch());
  CHECK(job.core.Heartbeat(beat, job.now)->servers_size() == 0);
}

TEST_CASE("the record of a placement comes before anybody acts on it") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  job.Take<Event>();
  job.Take<WriteRecord>();
  REQUIRE(job.Server(1, 2).ok());
  bool recorded = false;
  for (const Command& command : job.core.TakeCommands()) {
    if (const auto* record = std::get_if<WriteRecord>(&command)) {
      recorded = record->record.placement().shards(1).owner() == 0;
    }
    if (std::holds_alternative<ConfigureServer>(command)) CHECK(recorded);
  }
  CHECK(recorded);
}

TEST_CASE("what servers say when the job has ended does not take its end off the record") {
  Scenario job(WithReplicas({.clocks = 20}));
  job.Start();
  const auto before = job.Take<WriteRecord>();
  REQUIRE_FALSE(before.empty());
  const v1::ShardPlace& place = before.back().record.placement().shards(0);
  for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 20, v1::LEAVE_FINISHED).ok());
  for (const SaveAll& save : job.Take<SaveAll>()) {
    for (uint32_t i = 0; i < 2; ++i) {
      job.core.Answered(SaveDone{i, save.round, save.clock, TestFile("shard")}, job.now);
    }
  }
  for (const WriteManifest& write : job.Take<WriteManifest>()) {
    job.core.Answered(ManifestWritten{write.manifest.clock(), absl::OkStatus()}, job.now);
  }
  const auto records = job.Take<WriteRecord>();
  REQUIRE_FALSE(records.empty());
  CHECK(records.back().record.outcome() == v1::JOB_FINISHED);
  v1::ServerHeartbeatRequest request;
  request.set_job(kJob);
  request.set_index(place.owner());
  request.set_nonce(1);
  request.add_synced()->set_shard(0);
  request.mutable_synced(0)->set_since_epoch(place.since_epoch());
  REQUIRE(job.core.ServerHeartbeat(request, job.now).ok());
  CHECK(job.Take<WriteRecord>().empty());
}

TEST_CASE("of a last checkpoint that was asked for again only the newest answers count") {
  Scenario job(WithReplicas({.mode = v1::CONSISTENCY_MODE_ASYNC, .clocks = 20}));
  job.Start();
  Sync(job);
  for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 20, v1::LEAVE_FINISHED).ok());
  const auto first = job.Take<SaveAll>();
  REQUIRE(first.size() == 1);
  job.core.Answered(SaveDone{0, first[0].round, first[0].clock, TestFile("shard-0")}, job.now);
  REQUIRE(job.Server(1, 2).ok());
  const auto again = job.Take<SaveAll>();
  REQUIRE(again.size() == 1);
  CHECK(again[0].owners == std::vector<uint32_t>{0, 0});
  // Both answers are late: the new file has replaced the one that the first answer names.
  job.core.Answered(SaveDone{0, first[0].round, first[0].clock, TestFile("as it was")}, job.now);
  job.core.Answered(SaveDone{1, first[0].round, first[0].clock, absl::UnavailableError("gone")},
                    job.now);
  for (const uint32_t shard : {0u, 1u}) {
    job.core.Answered(SaveDone{shard, again[0].round, again[0].clock, TestFile("shard")}, job.now);
  }
  const auto manifests = job.Take<WriteManifest>();
  REQUIRE(manifests.size() == 1);
  CHECK(manifests[0].manifest.shards(0).file() == "shard");
}

// The sender may have died since, and the process that holds the index may be its successor.
TEST_CASE("a process that says it is a server is believed once it is heard again") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  REQUIRE(job.Registration(1, 2).ok());
  CHECK(job.Take<ConfigureServer>().empty());
  CHECK(job.core.Status(job.now).generation() == 0);
  SECTION("it never is") {
    CHECK(job.Beating(1, 1).ok());
    CHECK(job.Take<ConfigureServer>().empty());
    CHECK(absl::IsFailedPrecondition(job.Beating(1, 3)));
  }
  SECTION("it is") {
    CHECK(job.Beating(1, 2).ok());
    CHECK_FALSE(job.Take<ConfigureServer>().empty());
    CHECK(absl::IsFailedPrecondition(job.Beating(1, 1)));
    CHECK(absl::IsAborted(job.Registration(1, 1).status()));
  }
  SECTION("another says so, too: the newest counts") {
    REQUIRE(job.Registration(1, 3).ok());
    CHECK(absl::IsFailedPrecondition(job.Beating(1, 2)));
    CHECK(job.Beating(1, 3).ok());
  }
  SECTION("at once, where who held the index is lost") {
    for (double left = 11; left > 0; left -= 0.25) {
      job.now += FromSeconds(0.25);
      job.ServerBeat(0).IgnoreError();
      for (const uint32_t rank : {0u, 1u}) job.Beat(rank).IgnoreError();
      job.core.Tick(job.now);
    }
    job.Take<ConfigureServer>();
    REQUIRE(job.Registration(1, 4).ok());
    CHECK_FALSE(job.Take<ConfigureServer>().empty());
  }
}

TEST_CASE("a server whose replica is not synced takes the job back") {
  Scenario job(WithReplicas());
  job.Start();
  REQUIRE(job.Server(1, 2).ok());
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].request.load());
  CHECK(commands[0].request.generation() == 1);
}

TEST_CASE("a silent server is given up, and keeps replicas when it is back") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  for (double left = 11; left > 0; left -= 0.25) {
    job.now += FromSeconds(0.25);
    job.ServerBeat(0).IgnoreError();
    for (const uint32_t rank : {0u, 1u}) job.Beat(rank).IgnoreError();
    job.core.Tick(job.now);
  }
  auto commands = job.Take<ConfigureServer>();
  // The lost server gets no commands.
  REQUIRE(commands.size() == 1);
  CHECK(commands[0].server == 0);
  CHECK(commands[0].request.placement().shards(1).owner() == 0);
  CHECK_FALSE(commands[0].request.placement().shards(0).has_replica());
  REQUIRE(job.ServerBeat(1).ok());
  commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(commands[1].request.placement().shards(1).replica() == 1);
}

TEST_CASE("once every block has two holders again, shards go back to where they were") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  REQUIRE(job.Server(1, 2).ok());
  job.Take<ConfigureServer>();
  Sync(job);
  // First the server that has the block and answers its readers.
  auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 1);
  CHECK(commands[0].server == 0);
  CHECK(commands[0].request.placement().shards(1).owner() == 1);
  CHECK(commands[0].request.placement().shards(1).replica() == 0);
  job.core.Answered(ConfigureDone{0, commands[0].round, absl::OkStatus()}, job.now);
  commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 1);
  CHECK(commands[0].server == 1);
}

TEST_CASE("who must hear of a new owner first does so in every epoch until it has") {
  CoordinatorOptions options = WithReplicas({.servers = 3});
  Scenario job(options);
  job.Start();
  Sync(job);
  REQUIRE(job.Server(1, 2).ok());
  job.Take<ConfigureServer>();
  Sync(job);
  // Server 2 owns shard 1 and gives it back: it must know of that before the others do.
  auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 1);
  REQUIRE(commands[0].server == 2);
  const uint64_t round = commands[0].round;
  SECTION("another epoch on the way") {
    REQUIRE(job.Server(0, 2).ok());
    commands = job.Take<ConfigureServer>();
    REQUIRE(commands.size() == 1);
    CHECK(commands[0].server == 2);
    job.core.Answered(ConfigureDone{2, round, absl::OkStatus()}, job.now);
    CHECK(job.Take<ConfigureServer>().empty());
    job.core.Answered(ConfigureDone{2, commands[0].round, absl::OkStatus()}, job.now);
    CHECK(job.Take<ConfigureServer>().size() == 2);
  }
  SECTION("it dies") {
    // Shard 1's new owner has everything; the replicas have the rest of what server 2 had.
    REQUIRE(job.Server(2, 2).ok());
    CHECK(job.Take<ConfigureServer>().size() == 3);
  }
}

TEST_CASE("a server that has taken its place in a running job is shown as ready") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  REQUIRE(job.Server(1, 2).ok());
  CHECK(job.core.Status(job.now).servers(1).state() == "registered");
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  for (const int server : {0, 1}) {
    CHECK(job.core.Status(job.now).servers(server).state() == "ready");
  }
}

std::vector<uint32_t> OwnersAfter(Scenario& job, std::vector<uint32_t> before) {
  for (const WriteRecord& record : job.Take<WriteRecord>()) {
    before.clear();
    for (const v1::ShardPlace& place : record.record.placement().shards()) {
      before.push_back(place.owner());
    }
  }
  return before;
}

TEST_CASE("the shards of a server that is gone go on at their replicas at once") {
  const uint32_t servers = GENERATE(2u, 3u, 5u);
  for (uint32_t dead = 0; dead < servers; ++dead) {
    Scenario job(WithReplicas({.servers = servers}));
    job.Start();
    Sync(job);
    job.Take<Event>();
    job.core.Answered(ServerGone{dead, 1}, job.now);
    CHECK(job.EventNames() == std::vector<std::string>{"server_lost", "placement_changed"});
    const auto lost = job.Take<DisconnectServer>();
    REQUIRE(lost.size() == 1);
    CHECK(lost[0].server == dead);
    CHECK(job.Take<ConfigureServer>().size() == servers - 1);
    const auto owners = OwnersAfter(job, {});
    REQUIRE(owners.size() == servers);
    for (uint32_t shard = 0; shard < servers; ++shard) {
      CHECK(owners[shard] == (shard == dead ? (dead + 1) % servers : shard));
    }
    CHECK(job.core.Status(job.now).generation() == 0);
    // Its successor has nothing to claim, and is filled.
    REQUIRE(job.Registration(dead, 2).ok());
    CHECK(job.Take<ConfigureServer>().size() == servers);
    CHECK(job.core.Status(job.now).generation() == 0);
  }
}

TEST_CASE("that a server is gone is believed of the process that has the index, and once") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  const auto ignored = [&] {
    const bool told = !job.Take<ConfigureServer>().empty();
    return job.Take<DisconnectServer>().empty() && !told;
  };
  SECTION("another process") {
    job.core.Answered(ServerGone{1, 2}, job.now);
    CHECK(ignored());
  }
  SECTION("again") {
    job.core.Answered(ServerGone{1, 1}, job.now);
    CHECK_FALSE(ignored());
    job.core.Answered(ServerGone{1, 1}, job.now);
    CHECK(ignored());
  }
  SECTION("it is heard after all: its lease counts from then on, and it gets its shard back") {
    job.core.Answered(ServerGone{1, 1}, job.now);
    REQUIRE(job.ServerBeat(1).ok());
    CHECK_FALSE(ignored());
    job.core.Answered(ServerGone{1, 1}, job.now);
    CHECK(ignored());
    Sync(job);
    CHECK(OwnersAfter(job, {}) == std::vector<uint32_t>{0, 1});
    job.Pass(11, {0, 1}, false);
    CHECK_FALSE(ignored());
  }
  SECTION("the process after it may be gone, too") {
    job.core.Answered(ServerGone{1, 1}, job.now);
    REQUIRE(job.Server(1, 2).ok());
    // It gets its shard back, and then the other holder is filled.
    Sync(job);
    Sync(job);
    CHECK_FALSE(ignored());
    job.core.Answered(ServerGone{1, 2}, job.now);
    CHECK_FALSE(ignored());
  }
}

TEST_CASE("where its blocks would be lost, who seems to be gone keeps its lease") {
  SECTION("replicas that are not synced") {
    Scenario job(WithReplicas());
    job.Start();
    job.Take<ConfigureServer>();
    job.core.Answered(ServerGone{1, 1}, job.now);
    CHECK(job.Take<ConfigureServer>().empty());
    CHECK(job.core.Status(job.now).generation() == 0);
    CHECK(job.core.Status(job.now).servers(1).state() == "ready");
  }
  SECTION("one holder") {
    Scenario job(JobShape{});
    job.Start();
    job.core.Answered(ServerGone{1, 1}, job.now);
    CHECK(job.Take<DisconnectServer>().empty());
    CHECK(job.core.Status(job.now).generation() == 0);
  }
  SECTION("before the job has begun") {
    Scenario job(WithReplicas());
    REQUIRE(job.Server(0).ok());
    REQUIRE(job.Server(1).ok());
    job.core.Answered(ServerGone{1, 1}, job.now);
    CHECK(job.Take<DisconnectServer>().empty());
  }
  SECTION("nobody") {
    Scenario job(WithReplicas());
    job.core.Answered(ServerGone{1, 0}, job.now);
    CHECK(job.Take<Event>().empty());
  }
}

TEST_CASE("nothing is kept for a lost server, and it is connected again when it is back") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  job.Take<ConnectServer>();
  for (double left = 11; left > 0; left -= 0.25) {
    job.now += FromSeconds(0.25);
    job.ServerBeat(0).IgnoreError();
    for (const uint32_t rank : {0u, 1u}) job.Beat(rank).IgnoreError();
    job.core.Tick(job.now);
  }
  const auto lost = job.Take<DisconnectServer>();
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].server == 1);
  REQUIRE(job.ServerBeat(1).ok());
  const auto back = job.Take<ConnectServer>();
  REQUIRE(back.size() == 1);
  CHECK(back[0].address == "server1:1");
}

TEST_CASE("a server that cannot take what it is given takes the job back") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  REQUIRE(job.Server(1, 2).ok());
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  job.core.Answered(
      ConfigureDone{0, commands[0].round, absl::FailedPreconditionError("nothing here")}, job.now);
  CHECK(job.Take<ConfigureServer>().at(0).request.load());
}

TEST_CASE("a coordinator that was started again goes on with what the servers hold") {
  CoordinatorOptions options = WithReplicas();
  v1::CoordinatorRecord record;
  {
    Scenario before(options);
    before.Start();
    Sync(before);
    record = before.Take<WriteRecord>().back().record;
  }
  REQUIRE(record.placement().shards(0).synced());
  options.before = record;
  options.generation = record.generation() + 1;
  options.incarnation_base = 1000;
  Scenario job(options);
  const bool held = GENERATE(true, false);
  REQUIRE(job.Server(0, 2).ok());
  v1::RegisterServerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_index(1);
  request.set_address("server1:1");
  request.set_nonce(1);
  if (held) request.set_held_generation(0);
  REQUIRE(job.core.RegisterServer(request, job.now).ok());
  for (uint32_t rank : {0u, 1u}) job.Worker(rank, 100 + rank).IgnoreError();
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].request.load() == !held);
  CHECK(commands[0].request.generation() == (held ? 0 : 1));
  if (!held) return;
  CHECK(commands[0].request.placement().shards(0).owner() == 1);
  CHECK(commands[0].request.placement().shards(0).replica() == 0);
  REQUIRE(job.Worker(0, 100).ok());
  CHECK(job.core.state() == v1::JOB_RUNNING);
}

TEST_CASE("nobody hears of an epoch before it is on record") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  const uint64_t before = job.Beat(0)->epoch();
  REQUIRE(before > 0);
  job.Take<WriteRecord>();
  job.keeps_records = false;
  REQUIRE(job.Server(1, 2).ok());
  const auto records = job.Take<WriteRecord>();
  REQUIRE(records.size() == 1);
  v1::ServerHeartbeatRequest beat;
  beat.set_job(kJob);
  beat.set_nonce(1);
  // Neither the new epoch nor the previous one: a lease in the previous epoch must not be renewed.
  CHECK(job.core.ServerHeartbeat(beat, job.now)->epoch() == 0);
  CHECK(job.Beat(0)->servers_size() == 0);
  CHECK(absl::IsUnavailable(job.Worker(0, 300).status()));
  job.core.Answered(RecordDone{records[0].record, absl::OkStatus()}, job.now);
  const uint64_t after = records[0].record.placement().epoch();
  CHECK(after > before);
  CHECK(job.core.ServerHeartbeat(beat, job.now)->epoch() == after);
  CHECK(job.Worker(0, 300)->epoch() == after);
  CHECK(job.Beat(0)->epoch() == after);
  // A repeated answer about an earlier record takes nothing back.
  job.core.Answered(RecordDone{records[0].record, absl::ResourceExhaustedError("no space")},
                    job.now);
  CHECK(job.Beat(0)->epoch() == after);
}

TEST_CASE("that replicas are synced holds nothing up, and what follows from it does") {
  Scenario job(WithReplicas());
  job.Start();
  Sync(job);
  job.Carry();
  const auto synced = job.Take<WriteRecord>();
  REQUIRE_FALSE(synced.empty());
  CHECK_FALSE(synced.back().awaited);
  REQUIRE(job.Server(1, 2).ok());
  const auto moved = job.Take<WriteRecord>();
  REQUIRE_FALSE(moved.empty());
  CHECK(moved.back().awaited);
}

}  // namespace
}  // namespace leeway::replicas
