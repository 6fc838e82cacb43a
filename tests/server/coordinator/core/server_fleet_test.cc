// The servers, and which of them hold which shard.
#include "server/coordinator/core/server_fleet.h"

#include "server/coordinator/core/shard_assignment.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"
#include "tests/server/coordinator/core/taken.h"

namespace leeway::server_fleet {
namespace {

constexpr Time kNow = Time(std::chrono::seconds(1000));

v1::RegisterServerRequest Process(uint32_t index, uint64_t nonce, const std::string& host = "") {
  v1::RegisterServerRequest request;
  request.set_index(index);
  request.set_address("server" + std::to_string(index) + ":1");
  request.set_nonce(nonce);
  request.set_host(host);
  return request;
}

CoordinatorOptions Replicated(uint32_t servers) {
  CoordinatorOptions options = TestOptions({.servers = servers});
  options.job.mutable_servers()->set_replicas(2);
  options.job.mutable_servers()->set_shards(4);
  return options;
}

struct Fleet {
  explicit Fleet(CoordinatorOptions options) : facts(std::move(options)) {}
  void Register(uint32_t index, uint64_t nonce, const std::string& host = "") {
    fleet.Register(Process(index, nonce, host), kNow);
  }

  const JobFacts facts;
  Commands commands;
  ServerFleet fleet{facts, commands};
  ShardAssignment shards{facts, fleet, commands};
};

TEST_CASE("fleet: a server is connected when it comes, and disconnected when it goes") {
  Fleet of(Replicated(2));
  of.Register(0, 5);
  auto commands = of.commands.Take();
  REQUIRE(commands.size() == 2);
  CHECK(std::get<ConnectServer>(commands[0]).nonce == 5);
  CHECK(std::get<Event>(commands[1]).name == "server_registered");
  CHECK(of.fleet.Known(Process(0, 5)));
  CHECK_FALSE(of.fleet.Known(Process(0, 6)));
  CHECK_FALSE(of.fleet.Known(Process(1, 0)));
  CHECK(of.fleet.MayBeGone(0, 5));
  CHECK_FALSE(of.fleet.MayBeGone(0, 6));
  of.fleet.TakeForGone(0);
  commands = of.commands.Take();
  REQUIRE(commands.size() == 2);
  CHECK(std::get<DisconnectServer>(commands[0]).server == 0);
  CHECK(std::get<Event>(commands[1]).name == "server_lost");
  CHECK(of.fleet.Known(Process(0, 5)));
  CHECK(of.fleet.Seen(0, kNow));
  CHECK(Taken<ConnectServer>(of.commands).size() == 1);
  // It was heard after it had seemed gone: from now on its lease counts.
  CHECK_FALSE(of.fleet.MayBeGone(0, 5));
  of.fleet.Remove(0);
  CHECK(TakenEvents(of.commands) == Names{"server_removed"});
  CHECK_FALSE(of.fleet.Known(Process(0, 0)));
}

TEST_CASE("fleet: all are on one host where each that is here says the same one") {
  Fleet of(Replicated(3));
  CHECK_FALSE(of.fleet.OnOneHost());
  of.Register(0, 1, "a");
  of.Register(1, 1, "a");
  CHECK(of.fleet.OnOneHost());
  of.Register(2, 1, "b");
  CHECK_FALSE(of.fleet.OnOneHost());
  of.fleet.Remove(2);
  CHECK(of.fleet.OnOneHost());
  of.Register(1, 2, "");
  CHECK_FALSE(of.fleet.OnOneHost());
  of.Register(0, 2, "");
  CHECK_FALSE(of.fleet.OnOneHost());
}

TEST_CASE("fleet: a server that only its own host reaches is none for a worker elsewhere") {
  Fleet of(TestOptions({.servers = 1}));
  v1::RegisterServerRequest local = Process(0, 1);
  local.set_address("127.0.0.1:1");
  local.set_network("here");
  const Membership nobody(2, 0, std::chrono::seconds(10));
  CHECK(of.fleet.Check(local, nobody).ok());
  of.fleet.Register(local, kNow);
  CHECK(of.fleet.CheckWorker("worker 0", "here").ok());
  CHECK(of.fleet.CheckWorker("worker 0", "").ok());
  CHECK(absl::IsFailedPrecondition(of.fleet.CheckWorker("worker 0", "there")));
  Membership ranks(2, 0, std::chrono::seconds(10));
  REQUIRE(ranks.Claim(0, {"host", 1, 1}, false, kNow).ok());
  of.fleet.TakeNetwork(0, "there");
  CHECK(absl::IsInvalidArgument(of.fleet.Check(local, ranks)));
}

TEST_CASE("fleet: of the coordinator before, those that it had are waited for") {
  CoordinatorOptions options = Replicated(2);
  options.before.emplace();
  options.before->set_steps_per_epoch(3);
  options.before->set_servers(3);
  for (const uint64_t nonce : {5, 0, 7}) options.before->add_server_nonces(nonce);
  Fleet of(options);
  CHECK(of.fleet.table().wanted() == 3);
  CHECK(of.fleet.table().Missing() == std::vector<uint32_t>{0, 2});
}

TEST_CASE("shards: they are dealt out to who is here, and named with who has them") {
  Fleet of(Replicated(2));
  of.Register(0, 1);
  of.Register(1, 1);
  of.shards.Reset();
  CHECK(of.shards.Owners() == std::vector<uint32_t>{0, 1, 0, 1});
  CHECK(of.shards.ShardName(1) == "shard 1 (server 1)");
  v1::HeartbeatReply reply;
  of.shards.Fill(reply);
  REQUIRE(reply.servers_size() == 4);
  CHECK(reply.servers(3) == "server1:1");
  CHECK(reply.epoch() == of.shards.places().epoch());
}

TEST_CASE("shards: a resize ends once all is where it was asked to be") {
  Fleet of(Replicated(2));
  of.Register(0, 1);
  of.Register(1, 1);
  of.shards.Reset();
  CHECK(of.shards.ResizeMessage().empty());
  of.fleet.Want(3);
  of.shards.Resize(3);
  CHECK(of.shards.resizing());
  CHECK(of.shards.ResizeMessage() == "4 shards to move, to 3 servers and waiting for server 2");
  of.shards.FinishResizing();
  CHECK(of.shards.resizing());
  of.fleet.Want(2);
  of.shards.Resize(2);
  for (uint32_t index = 0; index < 2; ++index) {
    v1::ServerHeartbeatRequest synced;
    synced.set_index(index);
    for (uint32_t shard = index; shard < 4; shard += 2) {
      synced.add_synced()->set_shard(shard);
      synced.mutable_synced()->rbegin()->set_since_epoch(of.shards.places().epoch());
    }
    CHECK(of.shards.TakeSynced(synced));
    CHECK_FALSE(of.shards.TakeSynced(synced));
  }
  of.commands.Take();
  of.shards.FinishResizing();
  CHECK_FALSE(of.shards.resizing());
  CHECK(TakenEvents(of.commands) == Names{"resized"});
}

TEST_CASE("shards: a coordinator started again goes on where the servers still hold all") {
  CoordinatorOptions options = Replicated(2);
  Fleet before(options);
  for (const uint32_t index : {0, 1}) before.Register(index, 5 + index);
  before.shards.Reset();
  options.before.emplace();
  options.before->set_generation(3);
  *options.before->mutable_placement() = before.shards.places().proto();
  for (const uint64_t nonce : {5, 6}) options.before->add_server_nonces(nonce);
  Fleet of(options);
  CHECK_FALSE(of.shards.TakeUp());
  for (const uint32_t index : {0, 1}) {
    v1::RegisterServerRequest request = Process(index, 5 + index);
    request.set_held_generation(3);
    of.fleet.Register(request, kNow);
  }
  CHECK(of.shards.TakeUp());
  CHECK(of.shards.Owners() == before.shards.Owners());
}

}  // namespace
}  // namespace leeway::server_fleet
