#include "launcher/supervision/restart_policy.h"

#include "tests/catch.h"

namespace leeway::restart_policy {
namespace {

using Action = RestartPolicy::Action;
using Counts = std::vector<uint32_t>;
using std::chrono::seconds;

constexpr Time kNow{};
constexpr ExitStatus kKilled{.signaled = true, .code = 9};

ExitStatus Code(int code) { return {.signaled = false, .code = code}; }

const ExitStatus kFailed = Code(kExitTemporary);

}  // namespace

TEST_CASE("Each exit code has one meaning, for servers and workers") {
  const std::pair<ExitStatus, Action> meanings[] = {
      {Code(kExitDone), Action::kDone},
      {Code(kExitStopped), Action::kDone},
      {Code(kExitReplaced), Action::kReplaced},
      {Code(kExitTemporary), Action::kRestart},
      // An undocumented code, as of a program that could not be loaded.
      {Code(127), Action::kRestart},
      {kKilled, Action::kRestart},
      // Signal numbers are not exit codes.
      {{.signaled = true, .code = kExitStopped}, Action::kRestart},
      {{.signaled = true, .code = kExitUsage}, Action::kRestart},
      {Code(kExitUsage), Action::kFail},
      {Code(kExitPermanent), Action::kFail},
  };
  for (const auto& [exit, action] : meanings) {
    CAPTURE(exit.ToString());
    const Counts restarts = {action == Action::kRestart ? 1u : 0u};
    RestartPolicy policy(1, 1, {.server = 3, .worker = 3});
    CHECK(policy.OnWorkerExit(0, exit, kNow).action == action);
    CHECK(policy.worker_restarts() == restarts);
    CHECK(policy.OnServerExit(0, exit, kNow).action == action);
    CHECK(policy.server_restarts() == restarts);
  }
}

TEST_CASE("A server that came while the job trained is restarted like the others") {
  RestartPolicy policy(2, 2, {.server = 1, .worker = 3});
  CHECK(policy.OnServerExit(3, Code(0), kNow).action == Action::kDone);
  CHECK(policy.OnServerExit(3, kKilled, kNow).action == Action::kRestart);
  CHECK(policy.OnServerExit(3, kKilled, kNow).action == Action::kFail);
  CHECK(policy.server_restarts() == Counts{0, 0, 0, 1});
}

TEST_CASE("A crashed worker is restarted at once, then ever later, and not for ever") {
  RestartPolicy policy(2, 2, {.server = 3, .worker = 3});
  Time now = kNow;
  for (const double delay : {0, 1, 2}) {
    const auto decision = policy.OnWorkerExit(1, kKilled, now);
    CHECK(decision.action == Action::kRestart);
    CHECK(Seconds(decision.delay) == Approx(delay));
    now += decision.delay;
  }
  const auto last = policy.OnWorkerExit(1, kFailed, now);
  CHECK(last.action == Action::kFail);
  CHECK(last.reason ==
        "worker 1 crashed with exit code 1 after 3 restarts within 600 s (workers.max_restarts "
        "allows no more)");
  CHECK(policy.worker_restarts() == Counts{0, 3});
}

TEST_CASE("A process that dies now and then is restarted for as long as the job lasts") {
  RestartPolicy policy(1, 1, {.server = 3, .worker = 3, .window = seconds(600)});
  Time now = kNow;
  for (uint32_t death = 1; death <= 1000; ++death) {
    now += seconds(201);
    const auto decision = policy.OnWorkerExit(0, kKilled, now);
    REQUIRE(decision.action == Action::kRestart);
    REQUIRE(policy.OnServerExit(0, kFailed, now).action == Action::kRestart);
    // The oldest of the four deaths in 603 seconds does not count any more.
    REQUIRE(Seconds(decision.delay) == Approx(death == 1 ? 0 : death == 2 ? 1 : 2));
  }
  CHECK(policy.worker_restarts() == Counts{1000});
  // The first death after a long time is answered at once.
  now += seconds(600);
  CHECK(policy.OnWorkerExit(0, kKilled, now).delay == Duration::zero());
}

TEST_CASE("No window of a crash loop has more restarts than the budget, and it ends") {
  for (const uint32_t limit : {0u, 1u, 3u, 10u}) {
    for (const int life : {0, 1, 10, 30}) {
      CAPTURE(limit, life);
      RestartPolicy policy(1, 1, {.worker = limit, .window = seconds(600)});
      Time now = kNow;
      auto decision = policy.OnWorkerExit(0, kKilled, now);
      while (decision.action == Action::kRestart) {
        now += decision.delay + seconds(life);
        decision = policy.OnWorkerExit(0, kKilled, now);
      }
      CHECK(decision.action == Action::kFail);
      CHECK(policy.worker_restarts() == Counts{limit});
      CHECK(now - kNow < seconds(600));
    }
  }
}

TEST_CASE("Restarts are counted for each process by itself") {
  RestartPolicy policy(1, 2, {.server = 3, .worker = 1});
  CHECK(policy.OnWorkerExit(0, kKilled, kNow).action == Action::kRestart);
  CHECK(policy.OnWorkerExit(1, kKilled, kNow).action == Action::kRestart);
  CHECK(policy.worker_restarts() == Counts{1, 1});
  CHECK(policy.server_restarts() == Counts{0});
  CHECK(policy.OnWorkerExit(0, kKilled, kNow).action == Action::kFail);
}

TEST_CASE("Where the job goes on without lost workers, one that is restarted no more is left") {
  RestartPolicy policy(1, 2, {.server = 3, .worker = 0, .without_worker = true});
  const auto decision = policy.OnWorkerExit(1, kKilled, kNow);
  CHECK(decision.action == Action::kLeave);
  CHECK(decision.reason.find("goes on without it") != std::string::npos);
  // A worker that fails for good would fail on any machine.
  CHECK(policy.OnWorkerExit(0, Code(kExitPermanent), kNow).action == Action::kFail);
}

TEST_CASE("The reason names the process, its end and the count") {
  RestartPolicy policy(2, 1, {.server = 1, .worker = 3});
  CHECK(policy.OnWorkerExit(0, kKilled, kNow).reason ==
        "worker 0 crashed with signal 9 (Killed); restart 1 of 3 within 600 s");
  CHECK(policy.OnServerExit(1, kKilled, kNow).reason ==
        "server 1 crashed with signal 9 (Killed); restart 1 of 1 within 600 s");
  CHECK(policy.OnServerExit(1, kKilled, kNow).reason ==
        "server 1 crashed with signal 9 (Killed) after 1 restart within 600 s "
        "(servers.max_restarts allows no more)");
  CHECK(policy.OnServerExit(0, Code(kExitReplaced), kNow).reason ==
        "server 0: another process has taken its place; the job goes on with that process, which "
        "is not restarted here");
}

}  // namespace leeway::restart_policy
