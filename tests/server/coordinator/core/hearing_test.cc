// Processes that fall silent together, and servers that fall silent alone.
#include "server/coordinator/core/hearing.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::hearing {
namespace {

constexpr Duration kLease = std::chrono::seconds(10);
using Verdict = Hearing::Verdict;

Silence Of(std::vector<int> seconds) {
  Silence silence;
  for (const int each : seconds) silence.Count(std::chrono::seconds(each), kLease);
  return silence;
}

// Returns the verdict of a coordinator that ticks each second.
Verdict VerdictOf(const Silence& silence) {
  Hearing hearing{Time()};
  return hearing.Tick(silence, kLease, Time() + std::chrono::seconds(1));
}

TEST_CASE("hearing: most are silent, and a lease is over") {
  CHECK(VerdictOf(Of({11, 6, 7})) == Verdict::kMostAreSilent);
  CHECK(VerdictOf(Of({11, 6, 1})) == Verdict::kMostAreSilent);
  CHECK(VerdictOf(Of({11, 11})) == Verdict::kMostAreSilent);
  // First: no lease is over. Second: half of the processes are heard. Third: one process alone
  // proves nothing.
  CHECK(VerdictOf(Of({10, 9, 9})) == Verdict::kHears);
  CHECK(VerdictOf(Of({11, 11, 1, 1})) == Verdict::kHears);
  CHECK(VerdictOf(Of({60})) == Verdict::kHears);
  CHECK(VerdictOf({}) == Verdict::kHears);
}

TEST_CASE("hearing: one more lease is granted, not two, and again after two") {
  Hearing hearing{Time()};
  Time now;
  const auto after = [&](int seconds, const Silence& silence) {
    now += std::chrono::seconds(seconds);
    return hearing.Tick(silence, kLease, now);
  };
  CHECK(after(1, Of({11, 11, 11})) == Verdict::kMostAreSilent);
  for (int second = 0; second < 19; ++second) {
    CHECK(after(1, Of({11, 11, 11})) == Verdict::kHears);
  }
  CHECK(after(1, Of({11, 11, 11})) == Verdict::kMostAreSilent);
}

TEST_CASE("hearing: who stood still heard nobody meanwhile") {
  Hearing hearing{Time()};
  CHECK(hearing.Tick({}, kLease, Time() + std::chrono::seconds(5)) == Verdict::kHears);
  CHECK(hearing.Tick({}, kLease, Time() + std::chrono::seconds(11)) == Verdict::kStoodStill);
}

// ---- in the whole coordinator

bool Contains(const std::vector<std::string>& names, const char* name) {
  return std::count(names.begin(), names.end(), name) > 0;
}

CoordinatorOptions OptionsOf(uint32_t replicas) {
  CoordinatorOptions options = TestOptions({.servers = 2, .cut_every = 10});
  options.job.mutable_limits()->set_lease_seconds(10);
  options.job.mutable_limits()->set_start_seconds(120);
  options.job.mutable_servers()->set_replicas(replicas);
  return options;
}

// A job that has begun.
struct Running : Scenario {
  explicit Running(uint32_t replicas) : Scenario(OptionsOf(replicas)) {
    Start();
    EventNames();
  }
};

TEST_CASE("a coordinator that hears nobody takes no job back, whatever it holds of each block") {
  for (const uint32_t replicas : {1, 2}) {
    INFO(replicas << " holders");
    Running job(replicas);
    job.Pass(19, {}, /*server_beats=*/false);
    const auto at_first = job.EventNames();
    CHECK(Contains(at_first, "leases_extended"));
    CHECK_FALSE(Contains(at_first, "server_lost"));
    CHECK_FALSE(Contains(at_first, "worker_lost"));
    job.Pass(30, {}, /*server_beats=*/false);
    const auto then = job.EventNames();
    CHECK(Contains(then, "worker_lost"));
    CHECK_FALSE(Contains(then, "going_back"));
    job.Pass(1, {0, 1});
    CHECK_FALSE(Contains(job.EventNames(), "going_back"));
    CHECK(job.core.Status(job.now).generation() == 0);
  }
}

TEST_CASE("server 0 is part of the coordinator's process: its lease does not end") {
  Running job(1);
  for (int i = 0; i < 200; ++i) {
    job.now += FromSeconds(0.25);
    job.ServerBeat(1).IgnoreError();
    job.Beat(0).IgnoreError();
    job.Beat(1).IgnoreError();
    job.core.Tick(job.now);
  }
  const auto names = job.EventNames();
  CHECK_FALSE(Contains(names, "server_lost"));
  CHECK_FALSE(Contains(names, "going_back"));
}

// Server 0 and all workers are heard.
void PassWithoutServer1(Scenario& job, double seconds) {
  for (double left = seconds; left > 0; left -= 0.25) {
    job.now += FromSeconds(0.25);
    job.ServerBeat(0).IgnoreError();
    job.Beat(0).IgnoreError();
    job.Beat(1).IgnoreError();
    job.core.Tick(job.now);
  }
}

TEST_CASE("a silent server with the only copy is waited for, and told everything when it is back") {
  Running job(1);
  PassWithoutServer1(job, 12);
  const auto names = job.EventNames();
  CHECK(Contains(names, "server_lost"));
  CHECK_FALSE(Contains(names, "going_back"));
  CHECK_THAT(job.core.Status(job.now).message(),
             Catch::Contains("waiting for server 1, whose blocks no other server has"));
  job.Take<ConfigureServer>();
  job.Take<SetLive>();
  CHECK(job.ServerBeat(1).ok());
  const auto configured = job.Take<ConfigureServer>();
  CHECK(std::any_of(configured.begin(), configured.end(), [](const ConfigureServer& command) {
    return command.server == 1 && !command.request.load();
  }));
  CHECK(job.Take<SetLive>().size() == 2);
  CHECK_FALSE(Contains(job.EventNames(), "going_back"));
}

TEST_CASE("another process in a silent server's place takes the job back") {
  Running job(1);
  PassWithoutServer1(job, 12);
  job.EventNames();
  CHECK(job.Server(1, 2).ok());
  CHECK(Contains(job.EventNames(), "going_back"));
}

TEST_CASE("a silent server with the only copy is not waited for without end") {
  Running job(1);
  PassWithoutServer1(job, 129);
  CHECK_FALSE(Contains(job.EventNames(), "job_failing"));
  PassWithoutServer1(job, 3);
  CHECK(Contains(job.EventNames(), "job_failing"));
  CHECK_THAT(job.core.Status(job.now).message(), Catch::Contains("server 1"));
}

}  // namespace
}  // namespace leeway::hearing
