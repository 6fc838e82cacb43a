// Which workers combine their contributions.
#include "server/coordinator/core/host_groups.h"

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::host_groups {
namespace {

CoordinatorOptions Combining(uint32_t workers) {
  CoordinatorOptions options = TestOptions({.workers = workers});
  options.job.mutable_workers()->set_per_host(v1::PER_HOST_COMBINE);
  return options;
}

// A worker in a container of a host; its process id identifies its memory.
v1::RegisterWorkerRequest On(const std::string& host, std::optional<uint32_t> rank, uint32_t pid,
                             const std::string& container = "n") {
  v1::RegisterWorkerRequest request = WorkerRequest(rank, pid);
  request.set_host(host);
  if (!container.empty()) request.set_memory_host(host + "/" + container);
  request.mutable_contributions()->set_pid(pid);
  return request;
}

std::vector<std::pair<uint32_t, uint32_t>> PidsOf(const v1::HostGroup& group) {
  std::vector<std::pair<uint32_t, uint32_t>> pids;
  for (const auto& member : group.members()) {
    pids.emplace_back(member.rank(), member.contributions().pid());
  }
  return pids;
}
using Pids = std::vector<std::pair<uint32_t, uint32_t>>;

struct Groups {
  explicit Groups(CoordinatorOptions options) : facts(std::move(options)), groups(facts) {}
  Pids Reply(uint32_t rank) const {
    v1::RegisterWorkerReply reply;
    groups.Fill(rank, reply);
    return PidsOf(reply.group());
  }
  Pids Heartbeat(uint32_t rank) const {
    v1::HeartbeatReply reply;
    groups.Fill(rank, reply);
    return PidsOf(reply.group());
  }
  const JobFacts facts;
  HostGroups groups;
};

TEST_CASE("host groups: workers that reach each other's memory are a group, by rising rank") {
  Groups all(Combining(6));
  // Workers of two hosts in turn, one in another container, and one whose memory the others cannot
  // reach.
  all.groups.Take(On("a", 4, 14), 4);
  all.groups.Take(On("a", 0, 10), 0);
  all.groups.Take(On("b", 1, 11), 1);
  all.groups.Take(On("a", 2, 12), 2);
  all.groups.Take(On("a", 3, 13, "other"), 3);
  all.groups.Take(On("a", 5, 15, ""), 5);
  CHECK(all.Reply(0).empty());
  all.groups.Form();
  const Pids a = {{0, 10}, {2, 12}, {4, 14}};
  CHECK(all.Reply(0) == a);
  CHECK(all.Reply(4) == a);
  CHECK(all.Reply(1) == Pids{{1, 11}});
  CHECK(all.Reply(3) == Pids{{3, 13}});
  CHECK(all.Reply(5) == Pids{{5, 0}});
  CHECK(all.Reply(6).empty());
  // Only a worker that sends for others needs to know of their new lives.
  CHECK(all.Heartbeat(0) == a);
  CHECK(all.Heartbeat(2).empty());
  CHECK(all.Heartbeat(1).empty());
  all.groups.Take(On("a", 4, 24), 4);
  CHECK(all.Heartbeat(0) == Pids{{0, 10}, {2, 12}, {4, 24}});
}

TEST_CASE("host groups: one that leaves its contributions to nobody is alone") {
  Groups two(Combining(2));
  two.groups.Take(On("a", 0, 10), 0);
  v1::RegisterWorkerRequest without = On("a", 1, 11);
  without.clear_contributions();
  two.groups.Take(without, 1);
  two.groups.Form();
  CHECK(two.Reply(0) == Pids{{0, 10}});
  CHECK(two.Reply(1) == Pids{{1, 0}});
}

TEST_CASE("host groups: a job whose workers hand in for themselves has none") {
  Groups two(TestOptions({}));
  two.groups.Take(On("a", 0, 10), 0);
  two.groups.Take(On("a", 1, 11), 1);
  two.groups.Form();
  CHECK(two.Reply(0).empty());
  CHECK(two.groups.Check(On("b", 1, 12), 1, "who").ok());
}

TEST_CASE("host groups: a new life has to be where the others wait for it") {
  Groups three(Combining(3));
  for (uint32_t rank = 0; rank < 3; ++rank) {
    three.groups.Take(On(rank < 2 ? "a" : "b", rank, 10 + rank), rank);
  }
  CHECK(three.groups.Check(On("b", 1, 20), 1, "who").ok());
  three.groups.Form();
  CHECK(three.groups.Check(On("a", 1, 20), 1, "who").ok());
  CHECK(three.groups.Check(On("a", 7, 20), 7, "who").ok());
  // Nobody waits for a worker that is alone on its host.
  CHECK(three.groups.Check(On("c", 2, 20), 2, "who").ok());
  const absl::Status moved = three.groups.Check(On("b", 1, 20), 1, "worker 1 (process 20 on b)");
  CHECK(absl::IsFailedPrecondition(moved));
  CHECK(moved.message() ==
        "worker 1 (process 20 on b) is on b; worker 1 began on a, where 1 other worker would wait "
        "for it in shared memory (workers.per_host: combine): start it there, or resume the job "
        "with workers.per_host: separate");
  CHECK_THAT(std::string(three.groups.Check(On("a", 1, 20, "other"), 1, "who").message()),
             Catch::StartsWith("who is on a, but in another container, as another user or without "
                               "shared memory; worker 1 began on a"));
  v1::RegisterWorkerRequest without = On("a", 1, 20);
  without.clear_contributions();
  CHECK_THAT(std::string(three.groups.Check(without, 1, "who").message()),
             Catch::Contains("without shared memory"));
  CHECK_THAT(std::string(three.groups.Check(On("a", {}, 20), {}, "who").message()),
             Catch::Contains("--rank"));
}

TEST_CASE("host groups: workers hear of their group, and the leader of new lives") {
  Scenario scenario(Combining(2));
  const auto both = [&](uint32_t pid) {
    std::vector<Pids> told;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      scenario.Carry();
      const auto reply =
          scenario.Remember(scenario.core.RegisterWorker(On("a", rank, pid + rank), scenario.now));
      if (reply.ok()) told.push_back(PidsOf(reply->group()));
    }
    return told;
  };
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(scenario.Server(i).ok());
  CHECK(both(100).empty());
  for (const auto& command : scenario.Take<ConfigureServer>()) {
    scenario.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()},
                           scenario.now);
  }
  const Pids first = {{0, 100}, {1, 101}};
  CHECK(both(100) == std::vector<Pids>{first, first});
  CHECK(PidsOf(scenario.Beat(0)->group()) == first);
  CHECK_FALSE(scenario.Beat(1)->has_group());
  // From another host the worker is refused, and its previous life stays.
  scenario.Carry();
  const auto moved = scenario.core.RegisterWorker(On("b", 1, 200), scenario.now);
  CHECK(absl::IsFailedPrecondition(moved.status()));
  CHECK(scenario.Beat(1).ok());
  scenario.Carry();
  scenario.core.RegisterWorker(On("a", 1, 201), scenario.now).IgnoreError();
  CHECK(PidsOf(scenario.Beat(0)->group()) == Pids{{0, 100}, {1, 201}});
}

}  // namespace
}  // namespace leeway::host_groups
