// The workers hold the blocks (topology.type: all_reduce), each by a server in its own process.
#include "config/topology.h"

#include <string>

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::topology_of_job {
namespace {

using Catch::Contains;

CoordinatorOptions AllReduce() {
  CoordinatorOptions options = TestOptions({.servers = 1, .cut_every = 10});
  options.job.mutable_topology()->mutable_all_reduce();
  return options;
}

v1::RegisterServerRequest Server(uint32_t index, bool of_worker, uint64_t nonce = 1) {
  v1::RegisterServerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_index(index);
  request.set_address(absl::StrCat("host", index, ":1"));
  request.set_nonce(nonce);
  request.set_of_worker(of_worker);
  return request;
}

// Server 0 and the two workers are here, with their servers.
void Start(Scenario& job) {
  REQUIRE(job.core.RegisterServer(Server(0, false), job.now).ok());
  for (const uint32_t rank : {0u, 1u}) {
    REQUIRE(job.core.RegisterServer(Server(ServerOfRank(rank), true), job.now).ok());
    job.Worker(rank, 100 + rank).IgnoreError();
  }
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  REQUIRE(job.Worker(0, 100).ok());
  REQUIRE(job.Worker(1, 101).ok());
}

TEST_CASE("each worker's server owns a shard, and server 0 holds none") {
  Scenario job(AllReduce());
  Start(job);
  const v1::CoordinatorRecord record = job.Take<WriteRecord>().back().record;
  REQUIRE(record.placement().shards_size() == 2);
  CHECK(record.placement().shards(0).owner() == 1);
  CHECK(record.placement().shards(1).owner() == 2);
}

TEST_CASE("a gossip job stops at an exchange of the mean, which nobody has passed yet") {
  CoordinatorOptions options = AllReduce();
  options.job.mutable_topology()->mutable_gossip()->set_mean_every(10);
  Scenario job(options);
  Start(job);
  job.core.StopJob("Ctrl-C", job.now);
  // Worker 1 is three clocks ahead of the one that asks.
  REQUIRE(job.Beat(1, 16).ok());
  CHECK(job.StopAt(0, 13).value_or(0) == 20);
  CHECK(job.Beat(1, 16)->stop_at() == 20);
}

TEST_CASE("only a worker's server may hold blocks, and only where workers hold them") {
  Scenario job(AllReduce());
  const auto refusal = [&](const v1::RegisterServerRequest& request) {
    const absl::Status status = job.core.RegisterServer(request, job.now).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK_THAT(refusal(Server(1, false)),
             Contains("worker 0's server at host1:1 is a process of its own") &&
                 Contains("start workers only"));
  CHECK_THAT(refusal(Server(0, true)),
             Contains("server 0") && Contains("must be a process of its own"));
  Start(job);
  // Nor may it take a living server's place.
  CHECK_THAT(refusal(Server(2, false, 9)), Contains("worker 1's server"));
  CHECK(job.core.state() == v1::JOB_RUNNING);

  Scenario with_servers(TestOptions({}));
  CHECK(absl::IsInvalidArgument(
      with_servers.core.RegisterServer(Server(1, true), with_servers.now).status()));
}

TEST_CASE("who is missing is named once, as a worker") {
  Scenario job(AllReduce());
  const auto missing = [&] { return std::string(job.Worker(0, 100).status().message()); };
  CHECK_THAT(missing(), Contains("waiting for worker 1 and server 0 to register"));
  REQUIRE(job.core.RegisterServer(Server(0, false), job.now).ok());
  job.Worker(1, 101).IgnoreError();
  CHECK_THAT(missing(), Contains("waiting for the servers of workers 0, 1 to register"));
  REQUIRE(job.core.RegisterServer(Server(1, true), job.now).ok());
  CHECK_THAT(missing(), Contains("waiting for worker 1's server to register"));
}

TEST_CASE("there are no servers to add or remove") {
  Scenario job(AllReduce());
  Start(job);
  v1::ResizeServersRequest request;
  request.set_servers(2);
  const absl::Status status = job.core.ResizeServers(request, job.now).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Contains("resume it with another workers.count"));
}

TEST_CASE("the next life of server 0 goes on with what the workers still hold") {
  CoordinatorOptions options = AllReduce();
  {
    Scenario before(options);
    Start(before);
    options.before = before.Take<WriteRecord>().back().record;
  }
  options.generation = options.before->generation() + 1;
  options.incarnation_base = 1000;
  // Worker 1's server may have died as well, and then its blocks are lost.
  const bool all = GENERATE(true, false);
  Scenario job(options);
  REQUIRE(job.core.RegisterServer(Server(0, false, 2), job.now).ok());
  for (const uint32_t rank : {0u, 1u}) {
    v1::RegisterServerRequest request = Server(ServerOfRank(rank), true);
    if (all || rank == 0) request.set_held_generation(options.before->generation());
    REQUIRE(job.core.RegisterServer(request, job.now).ok());
    job.Worker(rank, 100 + rank).IgnoreError();
  }
  const auto commands = job.Take<ConfigureServer>();
  REQUIRE(commands.size() == 3);
  CHECK(commands[0].request.load() == !all);
  CHECK(commands[0].request.generation() == (all ? 0 : 1));
}

CoordinatorOptions Ring() {
  CoordinatorOptions options = AllReduce();
  options.job.mutable_topology()->mutable_all_reduce()->set_algorithm(
      v1::ALL_REDUCE_ALGORITHM_RING);
  return options;
}

std::vector<std::string> AddressesOf(const v1::Peers& peers) {
  return {peers.addresses().begin(), peers.addresses().end()};
}

TEST_CASE("workers that fetch from each other are told where the others listen, and of changes") {
  Scenario job(Ring());
  Start(job);
  const auto registered = job.Worker(0, 100);
  REQUIRE(registered.ok());
  CHECK(AddressesOf(registered->peers()) == std::vector<std::string>{"host1:1", "host2:1"});
  CHECK(registered->peers().local_addresses_size() == 2);
  uint64_t known = registered->peers().epoch();
  CHECK(known > 0);
  const auto heard = [&] {
    const auto reply = job.Beat(0, 0, known);
    REQUIRE(reply.ok());
    if (reply->has_peers()) {
      CHECK(reply->peers().epoch() > known);
      known = reply->peers().epoch();
    }
    return reply->has_peers() ? AddressesOf(reply->peers()) : std::vector<std::string>();
  };
  CHECK(heard().empty());
  const Time end = job.now + FromSeconds(Ring().job.limits().lease_seconds() + 1);
  while (job.now < end) {
    job.now += FromSeconds(0.25);
    for (const uint32_t server : {0u, 1u}) REQUIRE(job.ServerBeat(server).ok());
    for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Beat(rank).ok());
    job.core.Tick(job.now);
  }
  // Worker 1's server is lost, and comes back.
  CHECK(heard() == std::vector<std::string>{"host1:1", ""});
  CHECK(heard().empty());
  REQUIRE(job.ServerBeat(2).ok());
  CHECK(heard() == std::vector<std::string>{"host1:1", "host2:1"});
  CHECK(heard().empty());
}

TEST_CASE("a worker's next process has its own address") {
  Scenario job(Ring());
  Start(job);
  const uint64_t before = job.Worker(0, 100)->peers().epoch();
  v1::RegisterServerRequest next = Server(2, true, 9);
  next.set_address("elsewhere:1");
  next.set_local_address("unix-abstract:here");
  REQUIRE(job.core.RegisterServer(next, job.now).ok());
  REQUIRE(job.Beating(2, 9).ok());
  job.Worker(1, 201).IgnoreError();
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  const auto registered = job.Worker(0, 100);
  REQUIRE(registered.ok());
  CHECK(AddressesOf(registered->peers()) == std::vector<std::string>{"host1:1", "elsewhere:1"});
  CHECK(registered->peers().local_addresses(1).address() == "unix-abstract:here");
  CHECK(registered->peers().epoch() > before);
}

TEST_CASE("the next coordinator's addresses are new to every worker") {
  CoordinatorOptions options = Ring();
  Scenario before(options);
  Start(before);
  const uint64_t epoch = before.Worker(0, 100)->peers().epoch();
  options.incarnation_base = 1000;
  Scenario after(options);
  Start(after);
  CHECK(after.Worker(0, 100)->peers().epoch() > epoch + 1000);
}

TEST_CASE("workers that need no other worker are told of none") {
  Scenario job(AllReduce());
  Start(job);
  CHECK_FALSE(job.Worker(0, 100)->has_peers());
  CHECK_FALSE(job.Beat(0)->has_peers());
  CoordinatorOptions gossip = AllReduce();
  gossip.job.mutable_topology()->mutable_gossip();
  Scenario mixing(gossip);
  Start(mixing);
  CHECK(mixing.Worker(0, 100)->peers().addresses_size() == 2);
  CHECK(mixing.Beat(0)->has_peers());
}

}  // namespace
}  // namespace leeway::topology_of_job
