// The workers, and how far the run has come by their reports.
#include "server/coordinator/core/workers.h"

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"
#include "tests/server/coordinator/core/taken.h"

namespace leeway::workers {
namespace {

constexpr Time kNow = Time(std::chrono::seconds(1000));

// A job whose two workers are running.
struct Two {
  Two() {
    for (uint32_t rank = 0; rank < 2; ++rank) Register(rank, 100 + rank);
    commands.Take();
  }
  void Register(uint32_t rank, uint32_t pid) {
    const auto request = WorkerRequest(rank, pid);
    REQUIRE(workers.Claim(request, false, kNow).ok());
    workers.Registered(request, rank);
  }
  v1::HeartbeatRequest Evaluated(uint64_t clock) {
    v1::HeartbeatRequest request;
    request.add_evaluations()->set_clock(clock);
    return request;
  }

  const JobFacts facts{TestOptions({})};
  Commands commands;
  Workers workers{facts, commands};
};

TEST_CASE("workers: the servers are told of a rank when something has changed") {
  Two two;
  CHECK_FALSE(two.workers.Tell(1, true));
  CHECK(two.workers.Tell(1, false));
  CHECK_FALSE(two.workers.Tell(1, false));
  CHECK(Taken<SetLive>(two.commands) == std::vector<SetLive>{{1, false}});
  two.workers.TellAgain();
  CHECK(Taken<SetLive>(two.commands) == std::vector<SetLive>{{1, false}});
  two.workers.GoBack(0, 0, kNow);
  CHECK(two.workers.live() == std::vector<bool>{true, true});
}

TEST_CASE("workers: one that is lost is missing until it is seen again") {
  Two two;
  CHECK(two.workers.Missing() == 0);
  two.workers.Lose(0, "why", kNow);
  CHECK(two.workers.Missing() == 1);
  CHECK(two.workers.Seen(0, kNow));
  CHECK_FALSE(two.workers.Seen(0, kNow));
  CHECK(two.workers.Missing() == 0);
  CHECK(TakenEvents(two.commands) == Names{"worker_lost", "worker_returned"});
}

TEST_CASE("workers: who waits for the end does so until it has heard, or lives anew") {
  Two two;
  two.workers.WaitForEnd(0);
  two.workers.WaitForEnd(1);
  CHECK(two.workers.StopWaiting(0));
  CHECK_FALSE(two.workers.StopWaiting(0));
  CHECK(two.workers.any_waits());
  two.Register(1, 201);
  CHECK_FALSE(two.workers.any_waits());
  two.workers.WaitForEnd(1);
  two.workers.GoBack(0, 0, kNow);
  CHECK_FALSE(two.workers.any_waits());
}

TEST_CASE("workers: evaluations of after the cut are forgotten, and the newest thousand kept") {
  Two two;
  for (uint64_t clock = 1; clock <= RunProgress::kEvaluationsKept + 5; ++clock) {
    two.workers.Record(two.Evaluated(clock), kNow);
  }
  v1::JobStatus status;
  two.workers.Fill(kNow, status);
  CHECK(status.evaluations_size() == RunProgress::kEvaluationsKept);
  CHECK(status.evaluations(0).clock() == 6);
  two.workers.GoBack(0, 10, kNow);
  v1::JobStatus after;
  two.workers.Fill(kNow, after);
  CHECK(after.evaluations_size() == 5);
  CHECK(after.workers_size() == 2);
  CHECK(after.workers(1).pid() == 101);
}

}  // namespace
}  // namespace leeway::workers
