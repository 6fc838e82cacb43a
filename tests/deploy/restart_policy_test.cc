#include "deploy/launcher/restart_policy.h"

#include "tests/catch.h"

namespace leeway {
namespace {

using Action = RestartPolicy::Action;
using Counts = std::vector<uint32_t>;

constexpr ExitStatus kKilled{.signaled = true, .code = 9};
constexpr ExitStatus kAborted{.signaled = false, .code = 1};

ExitStatus Code(int code) { return {.signaled = false, .code = code}; }

}  // namespace

TEST_CASE("A worker that ended in order is not restarted") {
  RestartPolicy policy(2, 2, {.server = 3, .worker = 3});
  CHECK(policy.OnWorkerExit(0, Code(0)).action == Action::kDone);
  CHECK(policy.worker_restarts() == Counts{0, 0});
}

TEST_CASE("A server that came while the job trained is restarted like the others") {
  RestartPolicy policy(2, 2, {.server = 1, .worker = 3});
  CHECK(policy.OnServerExit(3, Code(0)).action == Action::kDone);
  CHECK(policy.OnServerExit(3, kKilled).action == Action::kRestart);
  CHECK(policy.OnServerExit(3, kKilled).action == Action::kFail);
  CHECK(policy.server_restarts() == Counts{0, 0, 0, 1});
}

TEST_CASE("A crashed worker is restarted at once, then ever later, and not for ever") {
  RestartPolicy policy(2, 2, {.server = 3, .worker = 3});
  const double delays[] = {0, 1, 2};
  for (const double delay : delays) {
    const auto decision = policy.OnWorkerExit(1, kKilled);
    CHECK(decision.action == Action::kRestart);
    CHECK(Seconds(decision.delay) == Approx(delay));
  }
  const auto last = policy.OnWorkerExit(1, kAborted);
  CHECK(last.action == Action::kFail);
  CHECK(last.reason ==
        "worker 1 crashed with exit code 1 after 3 restarts (workers.max_restarts allows no more)");
  CHECK(policy.worker_restarts() == Counts{0, 3});
}

TEST_CASE("Restarts are counted for each rank by itself") {
  RestartPolicy policy(1, 2, {.server = 3, .worker = 1});
  CHECK(policy.OnWorkerExit(0, kKilled).action == Action::kRestart);
  CHECK(policy.OnWorkerExit(1, kKilled).action == Action::kRestart);
  CHECK(policy.worker_restarts() == Counts{1, 1});
  CHECK(policy.server_restarts() == Counts{0});
  CHECK(policy.OnWorkerExit(0, kKilled).action == Action::kFail);
}

TEST_CASE("Where the job goes on without lost workers, one that is restarted no more is left") {
  RestartPolicy policy(1, 2, {.server = 3, .worker = 0, .without_worker = true});
  const auto decision = policy.OnWorkerExit(1, kKilled);
  CHECK(decision.action == Action::kLeave);
  CHECK(decision.reason.find("goes on without it") != std::string::npos);
  // One that fails for good would fail anywhere.
  CHECK(policy.OnWorkerExit(0, Code(3)).action == Action::kFail);
}

TEST_CASE("The reason names the signal and the count") {
  RestartPolicy policy(1, 1, {.server = 3, .worker = 3});
  CHECK(policy.OnWorkerExit(0, kKilled).reason ==
        "worker 0 crashed with signal 9 (Killed); restart 1 of 3");
}

TEST_CASE("What a restart would not mend is not restarted") {
  RestartPolicy policy(1, 1, {.server = 3, .worker = 3});
  CHECK(policy.OnWorkerExit(0, Code(kExitUsage)).action == Action::kFail);
  CHECK(policy.OnWorkerExit(0, Code(kExitPermanent)).action == Action::kFail);
  CHECK(policy.worker_restarts() == Counts{0});
}

TEST_CASE("With max_restarts 0 the first crash fails the job") {
  RestartPolicy policy(1, 1, {.server = 0, .worker = 0});
  CHECK(policy.OnWorkerExit(0, kKilled).action == Action::kFail);
}

TEST_CASE("A crashed server is restarted, as often as its own limit says") {
  RestartPolicy policy(2, 1, {.server = 1, .worker = 0});
  CHECK(policy.OnServerExit(0, Code(0)).action == Action::kDone);
  const auto decision = policy.OnServerExit(1, kKilled);
  CHECK(decision.action == Action::kRestart);
  CHECK(decision.reason == "server 1 crashed with signal 9 (Killed); restart 1 of 1");
  CHECK(policy.OnServerExit(0, kKilled).action == Action::kRestart);
  const auto last = policy.OnServerExit(1, kKilled);
  CHECK(last.action == Action::kFail);
  CHECK(last.reason ==
        "server 1 crashed with signal 9 (Killed) after 1 restarts (servers.max_restarts allows no "
        "more)");
  CHECK(policy.server_restarts() == Counts{1, 1});
}

TEST_CASE("A server that says that the job has failed is not restarted") {
  RestartPolicy policy(1, 1, {.server = 3, .worker = 3});
  CHECK(policy.OnServerExit(0, Code(kExitFailed)).action == Action::kFail);
  CHECK(policy.OnServerExit(0, Code(kExitUsage)).action == Action::kFail);
}

}  // namespace leeway
