// Servers leave in order, and servers come and leave by themselves.
#include <algorithm>

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::drain {
namespace {

struct Fleet {
  uint32_t servers = 2;
  uint32_t shards = 4;
  uint32_t replicas = 2;
  // servers.max and servers.min.
  uint32_t most = 0;
  uint32_t least = 0;
};

CoordinatorOptions Options(const Fleet& fleet) {
  CoordinatorOptions options = TestOptions({.servers = fleet.servers, .cut_every = 10});
  v1::Servers& servers = *options.job.mutable_servers();
  servers.set_shards(fleet.shards);
  servers.set_replicas(fleet.replicas);
  servers.set_max(fleet.most);
  servers.set_min(fleet.least);
  return options;
}

// A job whose servers do what they are told, and report each replica as synced.
class Drained : public Scenario {
 public:
  explicit Drained(const Fleet& fleet) : Scenario(Options(fleet)) {
    Start();
    servers = std::max(fleet.servers, fleet.most);
    nonces.resize(servers, 1);
    Settle();
    CHECK(core.state() == v1::JOB_RUNNING);
  }

  absl::StatusOr<v1::DrainServerReply> Drain(uint32_t index, uint64_t nonce = 1) {
    v1::DrainServerRequest request;
    request.set_job(kJob);
    request.set_index(index);
    request.set_nonce(nonce);
    return core.DrainServer(request, now);
  }

  // Asks until the server may leave. Returns how often it asked.
  int DrainWhole(uint32_t index) {
    for (int asked = 1; asked < 50; ++asked) {
      const auto reply = Drain(index);
      REQUIRE(reply.ok());
      CHECK(reply->released() == reply->message().empty());
      if (reply->released()) return asked;
      Step();
    }
    FAIL("server " << index << " is never released");
    return 0;
  }

  // The process has ended, and its connection with it.
  void Gone(uint32_t index) {
    core.Answered(ServerGone{index, nonces[index]}, now);
    Settle();
  }

  void Step() {
    for (const ConfigureServer& command : Take<ConfigureServer>()) {
      core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, now);
    }
    for (const WriteRecord& write : Take<WriteRecord>()) {
      if (write.record.has_placement()) placement = write.record.placement();
    }
    for (int shard = 0; shard < placement.shards_size(); ++shard) {
      const v1::ShardPlace& place = placement.shards(shard);
      if (!place.has_replica() || frozen) continue;
      v1::ServerHeartbeatRequest request;
      request.set_job(kJob);
      request.set_index(place.owner());
      request.set_nonce(nonces[place.owner()]);
      request.set_generation(generation);
      request.add_synced()->set_shard(static_cast<uint32_t>(shard));
      request.mutable_synced(0)->set_since_epoch(place.since_epoch());
      core.ServerHeartbeat(request, now).IgnoreError();
    }
    core.Tick(now);
  }
  void Settle() {
    for (int i = 0; i < 30; ++i) Step();
  }

  std::vector<uint32_t> Owners() const {
    std::vector<uint32_t> owners;
    for (const auto& place : placement.shards()) owners.push_back(place.owner());
    return owners;
  }
  std::string StateOf(uint32_t index) {
    const v1::JobStatus status = core.Status(now);
    for (const v1::ServerStatus& server : status.servers()) {
      if (server.index() == index) return server.state();
    }
    return "";
  }

  v1::Placement placement;
  // Replicas are never synced.
  bool frozen = false;
};

using Places = std::vector<uint32_t>;

TEST_CASE("a drained server holds nothing when it is released, and nobody goes back") {
  const uint32_t replicas = GENERATE(1u, 2u), leaves = GENERATE(0u, 1u, 2u);
  Drained job({.servers = 3, .shards = 6, .replicas = replicas});
  job.DrainWhole(leaves);
  CHECK(job.StateOf(leaves) == "draining");
  for (const v1::ShardPlace& place : job.placement.shards()) {
    CHECK(place.owner() != leaves);
    CHECK((!place.has_replica() || place.replica() != leaves));
    // Two of three servers are left: blocks that had two holders have two again.
    CHECK(place.has_replica() == (replicas == 2));
  }
  job.Gone(leaves);
  CHECK(job.StateOf(leaves) == "lost");
  CHECK(job.core.Status(job.now).generation() == 0);
  CHECK(job.core.state() == v1::JOB_RUNNING);
}

TEST_CASE("the next process of a drained index takes its shards up again") {
  const uint32_t replicas = GENERATE(1u, 2u);
  Drained job({.servers = 2, .shards = 4, .replicas = replicas});
  job.DrainWhole(1);
  CHECK(job.Owners() == Places{0, 0, 0, 0});
  job.Gone(1);
  REQUIRE(job.Server(1, 2).ok());
  job.Settle();
  CHECK(job.Owners() == Places{0, 1, 0, 1});
  CHECK(job.core.Status(job.now).generation() == 0);
  CHECK(job.StateOf(1) == "ready");
}

TEST_CASE("a server stays until what takes its shards is filled") {
  Drained job({.servers = 2, .shards = 4, .replicas = 1});
  job.frozen = true;
  for (int i = 0; i < 20; ++i) {
    const auto reply = job.Drain(1);
    REQUIRE(reply.ok());
    CHECK_FALSE(reply->released());
    CHECK_THAT(reply->message(), Catch::Contains("shards leave server 1"));
    job.Step();
  }
  CHECK(job.Owners() == Places{0, 1, 0, 1});
  job.frozen = false;
  job.DrainWhole(1);
}

TEST_CASE("a server that nobody can follow may go at once, and is told why") {
  SECTION("there is no other") {
    Drained job({.servers = 1, .shards = 2, .replicas = 1});
    const auto reply = job.Drain(0);
    REQUIRE(reply.ok());
    CHECK(reply->released());
    CHECK(reply->message() == "the job has no other server");
  }
  SECTION("the others leave, too") {
    Drained job({});
    job.DrainWhole(0);
    const auto reply = job.Drain(1);
    CHECK(reply->released());
    CHECK(reply->message() == "the job has no other server");
    CHECK(job.Owners() == Places{1, 1, 1, 1});
  }
  SECTION("the job has not begun") {
    Scenario job(Options({}));
    REQUIRE(job.Server(0).ok());
    v1::DrainServerRequest request;
    request.set_job(kJob);
    request.set_nonce(1);
    const auto reply = job.core.DrainServer(request, job.now);
    REQUIRE(reply.ok());
    CHECK(reply->released());
    CHECK(reply->message() == "the job has not begun yet");
  }
}

TEST_CASE("only the process that is the server can have it drained") {
  Drained job({});
  CHECK(absl::IsUnavailable(job.Drain(1, 7).status()));
  CHECK(absl::IsInvalidArgument(job.Drain(4).status()));
  CHECK(absl::IsInvalidArgument(job.Drain(UINT32_MAX).status()));
  CHECK(absl::IsUnavailable(job.Drain(3).status()));
  v1::DrainServerRequest other;
  other.set_job(kJob + 1);
  other.set_nonce(1);
  CHECK(absl::IsFailedPrecondition(job.core.DrainServer(other, job.now).status()));
  job.Settle();
  CHECK(job.Owners() == Places{0, 1, 0, 1});
}

TEST_CASE("with servers.max servers come by themselves, in order of their indices") {
  Drained job({.servers = 2, .shards = 4, .replicas = 2, .most = 4});
  // Server 2 must come before server 3.
  CHECK(absl::IsUnavailable(job.Server(3).status()));
  REQUIRE(job.Server(2).ok());
  job.Settle();
  REQUIRE(job.Server(3).ok());
  job.Settle();
  CHECK(job.Owners() == Places{0, 1, 2, 3});
  CHECK(job.core.Status(job.now).servers_wanted() == 4);
  CHECK(job.core.Status(job.now).generation() == 0);
}

TEST_CASE("with servers.max the last servers go by themselves, and may come again") {
  Drained job({.servers = 2, .shards = 4, .replicas = 2, .most = 4});
  for (const uint32_t server : {2u, 3u}) {
    REQUIRE(job.Server(server).ok());
    job.Settle();
  }
  // As when a StatefulSet is scaled down: both are asked at once, and the lower one is ready first.
  REQUIRE(job.Drain(2).ok());
  REQUIRE(job.Drain(3).ok());
  job.DrainWhole(2);
  job.DrainWhole(3);
  job.Settle();
  CHECK(job.core.Status(job.now).servers_wanted() == 2);
  CHECK(job.Owners() == Places{0, 1, 0, 1});
  CHECK(job.Drain(3)->released());
  // The process that was released is not accepted again; a new process is.
  v1::RegisterServerRequest same;
  *same.mutable_build() = ThisBuild();
  same.set_index(2);
  same.set_address("server2:1");
  same.set_nonce(1);
  same.set_job(kJob);
  CHECK(absl::IsAlreadyExists(job.core.RegisterServer(same, job.now).status()));
  REQUIRE(job.Server(2, 2).ok());
  job.Settle();
  CHECK(job.core.Status(job.now).servers_wanted() == 3);
  CHECK(job.core.Status(job.now).generation() == 0);
}

TEST_CASE("servers below the minimum are waited for, and so are all without servers.max") {
  SECTION("the minimum is the count") {
    Drained job({.servers = 2, .most = 4});
    job.DrainWhole(1);
    job.Gone(1);
    CHECK(job.core.Status(job.now).servers_wanted() == 2);
  }
  SECTION("the minimum is below it") {
    Drained job({.servers = 3, .shards = 6, .most = 4, .least = 2});
    job.DrainWhole(2);
    CHECK(job.core.Status(job.now).servers_wanted() == 2);
  }
  SECTION("no maximum") {
    Drained job({.servers = 3, .shards = 6});
    job.DrainWhole(2);
    CHECK(job.core.Status(job.now).servers_wanted() == 3);
    CHECK(absl::IsUnavailable(job.Server(3).status()));
  }
}

}  // namespace
}  // namespace leeway::drain
