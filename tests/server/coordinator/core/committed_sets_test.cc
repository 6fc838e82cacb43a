// Clocks that can do without some workers: which contributions count, and how such a job ends.
#include "server/coordinator/core/committed_set_book.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::committed_sets {
namespace {

using Ranks = std::vector<uint32_t>;
const std::vector<bool> kAll3 = {true, true, true};

CommittedSetBook TwoServers() {
  CommittedSetBook book;
  book.Restart(5, {0, 1});
  return book;
}

TEST_CASE("committed sets: a set is what every server holds, once enough of the wanted are there") {
  CommittedSetBook book = TwoServers();
  book.OnHeld(0, 5, {0, 1, 2});
  book.OnHeld(1, 5, {1});
  CHECK_FALSE(book.Take(kAll3, 1));
  book.OnHeld(1, 5, {1, 2});
  CHECK(book.Take(kAll3, 1) == CommitSet{0, 5, Ranks{1, 2}});
  CHECK(book.next() == 6);
  CHECK_FALSE(book.Take(kAll3, 1));
}

TEST_CASE("committed sets: all that every server holds is in the set, though fewer would do") {
  CommittedSetBook book = TwoServers();
  book.OnHeld(0, 5, {0, 1, 2});
  book.OnHeld(1, 5, {0, 1, 2});
  CHECK(book.Take(kAll3, 1)->ranks == Ranks{0, 1, 2});
}

TEST_CASE(
    "committed sets: what is told of another clock, or by a server without blocks, is ignored") {
  CommittedSetBook book = TwoServers();
  book.OnHeld(0, 4, {0, 1, 2});
  book.OnHeld(1, 6, {0, 1, 2});
  book.OnHeld(2, 5, {0, 1, 2});
  CHECK_FALSE(book.Take(kAll3, 2));
}

TEST_CASE(
    "committed sets: what a server told is forgotten with it, and told anew by who has its "
    "blocks") {
  CommittedSetBook book = TwoServers();
  book.OnHeld(0, 5, {0, 1, 2});
  book.OnHeld(1, 5, {0, 1});
  book.Forget(1);
  CHECK_FALSE(book.Take(kAll3, 1));
  book.OnHeld(1, 5, {1, 2});
  CHECK(book.Take(kAll3, 1)->ranks == Ranks{1, 2});
}

TEST_CASE(
    "committed sets: a lost rank is not waited for, and counts if its contribution is there") {
  CommittedSetBook book = TwoServers();
  const std::vector<bool> without_0 = {false, true, true};
  book.OnHeld(0, 5, {0, 1});
  book.OnHeld(1, 5, {0, 1});
  CHECK_FALSE(book.Take(without_0, 0));
  book.OnHeld(0, 5, {2});
  book.OnHeld(1, 5, {2});
  CHECK(book.Take(without_0, 0)->ranks == Ranks{0, 1, 2});
  CHECK_FALSE(book.Take({false, false, false}, 3));
}

CoordinatorOptions Options(uint32_t workers, uint32_t backup, v1::WorkerLoss loss,
                           double grace_deviations = 0) {
  CoordinatorOptions options = TestOptions({.workers = workers, .clocks = 3});
  options.job.mutable_consistency()->set_backup_workers(backup);
  options.job.mutable_consistency()->set_grace_deviations(grace_deviations);
  options.job.mutable_workers()->set_on_worker_loss(loss);
  // Blocks this small put blocks on both servers.
  options.job.mutable_servers()->set_block_bytes(64);
  return options;
}

absl::Status Held(Scenario& job, uint32_t server, uint64_t clock, const Ranks& ranks,
                  bool again = false) {
  v1::ContributionsHeldRequest request;
  request.set_job(kJob);
  request.set_generation(job.generation);
  request.set_index(server);
  request.set_clock(clock);
  request.set_again(again);
  request.mutable_ranks()->Add(ranks.begin(), ranks.end());
  return job.core.ContributionsHeld(request, job.now);
}

void HeldByAll(Scenario& job, uint64_t clock, const Ranks& ranks) {
  for (uint32_t server = 0; server < 2; ++server) {
    CHECK(Held(job, server, clock, ranks) == absl::OkStatus());
  }
}

std::vector<Ranks> Sets(Scenario& job) {
  std::vector<Ranks> sets;
  for (const CommitSet& set : job.Take<CommitSet>()) sets.push_back(set.ranks);
  return sets;
}

TEST_CASE("backup workers: a clock is complete without the slowest, and the job ends without it") {
  Scenario job(Options(3, 1, v1::WORKER_LOSS_WAIT));
  job.Start();
  for (uint64_t clock = 0; clock < 3; ++clock) HeldByAll(job, clock, {0, 1});
  CHECK(Sets(job) == std::vector<Ranks>(3, {0, 1}));
  // The slow worker is at clock 1 when the others have finished, and continues at the end.
  for (uint32_t rank = 0; rank < 3; ++rank) {
    CHECK(job.Leave(rank, 3, v1::LEAVE_FINISHED) == absl::OkStatus());
  }
  CHECK(job.Take<SaveAll>().at(0).clock == 3);
}

TEST_CASE("backup workers: more of them lost than there are backups are waited for") {
  Scenario job(Options(3, 1, v1::WORKER_LOSS_WAIT));
  job.Start();
  job.Pass(11, {0});
  HeldByAll(job, 0, {0});
  CHECK(Sets(job).empty());
}

TEST_CASE(
    "committed sets: who is missing, and when the others' contributions had come everywhere") {
  CommittedSetBook book = TwoServers();
  const Time t = Time(std::chrono::seconds(1));
  const Time later = t + std::chrono::milliseconds(5);
  book.OnHeld(0, 5, {0, 1}, {t, later});
  book.OnHeld(1, 5, {0, 2}, {later, t});
  CHECK(book.Missing(kAll3) == Ranks{1, 2});
  CHECK(book.Arrivals() == std::vector<Time>{later});
  // A repeated report keeps its time.
  book.OnHeld(1, 5, {0, 1}, {later + later.time_since_epoch(), t});
  CHECK(book.Arrivals() == std::vector<Time>{later, later});
  CHECK(book.Enough(kAll3, 1));
  CHECK_FALSE(book.Enough(kAll3, 0));
}

TEST_CASE("grace: a clock that could do without one waits for it, says so, and then goes on") {
  Scenario job(Options(3, 1, v1::WORKER_LOSS_WAIT, 3));
  job.Start();
  HeldByAll(job, 0, {0, 1});
  CHECK(Sets(job).empty());
  CHECK(job.core.Status(job.now).message() ==
        "clock 0 could go on without worker 2, but waits for at most 1 s more");
  REQUIRE(job.core.alarm() == job.now + std::chrono::seconds(1));
  job.now += std::chrono::milliseconds(999);
  job.core.Wake(job.now);
  CHECK(Sets(job).empty());
  job.now += std::chrono::milliseconds(1);
  job.core.Wake(job.now);
  CHECK(Sets(job) == std::vector<Ranks>{{0, 1}});
  CHECK_FALSE(job.core.alarm());
}

TEST_CASE("grace: with all of them nobody waits") {
  Scenario job(Options(3, 1, v1::WORKER_LOSS_WAIT, 3));
  job.Start();
  HeldByAll(job, 0, {0, 1});
  HeldByAll(job, 0, {0, 1, 2});
  CHECK(Sets(job) == std::vector<Ranks>{{0, 1, 2}});
  CHECK_FALSE(job.core.alarm());
}

TEST_CASE("grace: a clock that nobody wants any more is not waited for") {
  Scenario job(Options(3, 1, v1::WORKER_LOSS_WAIT, 3));
  job.Start();
  HeldByAll(job, 0, {0, 1});
  REQUIRE(job.core.alarm());
  job.core.StopJob("enough", job.now);
  job.now += std::chrono::seconds(1);
  job.core.Wake(job.now);
  CHECK_FALSE(job.core.alarm());
  CHECK(Sets(job).empty());
}

TEST_CASE("continue: a lost worker is not waited for, a life that joins again is") {
  Scenario job(Options(3, 0, v1::WORKER_LOSS_CONTINUE));
  job.Start();
  HeldByAll(job, 0, {0, 1});
  CHECK(Sets(job).empty());
  job.Pass(11, {0, 1});
  CHECK(Sets(job) == std::vector<Ranks>{{0, 1}});
  REQUIRE(job.Worker(2, 300).ok());
  HeldByAll(job, 1, {0, 1});
  CHECK(Sets(job).empty());
  HeldByAll(job, 1, {0, 1, 2});
  CHECK(Sets(job) == std::vector<Ranks>{{0, 1, 2}});
}

TEST_CASE("continue: a worker that never comes back does not keep the job from finishing") {
  Scenario job(Options(3, 0, v1::WORKER_LOSS_CONTINUE));
  job.Start();
  job.Pass(11, {0, 1});
  for (uint64_t clock = 0; clock < 3; ++clock) HeldByAll(job, clock, {0, 1});
  CHECK(Sets(job).size() == 3);
  job.Leave(0, 3, v1::LEAVE_FINISHED).IgnoreError();
  job.Leave(1, 3, v1::LEAVE_FINISHED).IgnoreError();
  job.FinishSaving();
  CHECK(job.core.state() == v1::JOB_FINISHED);
}

TEST_CASE(
    "committed sets: a stop is where all blocks already go, whoever asks and wherever it stands") {
  Scenario job(Options(3, 1, v1::WORKER_LOSS_WAIT));
  job.Start();
  HeldByAll(job, 0, {0, 1});
  HeldByAll(job, 1, {0, 1});
  job.core.StopJob("enough", job.now);
  HeldByAll(job, 2, {0, 1});
  CHECK(Sets(job).size() == 2);
  // First the slow worker, then one that is far ahead.
  CHECK(job.StopAt(2, 0).value() == 2);
  CHECK(job.StopAt(0, 2).value() == 2);
  CHECK(job.Beat(1, 1)->stop_at() == 2);
  job.Leave(2, 2, v1::LEAVE_STOPPED).IgnoreError();
  job.Leave(0, 2, v1::LEAVE_STOPPED).IgnoreError();
  job.Pass(11);
  CHECK(job.Take<SaveAll>().at(0).clock == 2);
}

TEST_CASE(
    "committed sets: a set that was lost with a shard's owner is said again when it is asked for") {
  Scenario job(Options(3, 1, v1::WORKER_LOSS_WAIT));
  job.Start();
  HeldByAll(job, 0, {0, 1});
  CHECK(Sets(job).size() == 1);
  CHECK(Held(job, 1, 0, {0, 1, 2}) == absl::OkStatus());
  CHECK(Sets(job).empty());
  CHECK(Held(job, 1, 0, {0, 1, 2}, true) == absl::OkStatus());
  CHECK(Sets(job) == std::vector<Ranks>{{0, 1}});
}

// A server that was silent for a while has missed the set, or has not applied it yet.
TEST_CASE("committed sets: a shard that is behind the last cut is told the set, and asked again") {
  Scenario job(Options(3, 0, v1::WORKER_LOSS_CONTINUE));
  job.Start();
  for (uint64_t clock = 0; clock < 3; ++clock) HeldByAll(job, clock, {0, 1, 2});
  CHECK(Sets(job).size() == 3);
  for (const uint32_t rank : {0u, 1u, 2u}) {
    job.Leave(rank, 3, v1::LEAVE_FINISHED).IgnoreError();
  }
  const SaveAll first = job.Take<SaveAll>().at(0);
  job.core.Answered(SaveDone{1, first.round, 3, absl::FailedPreconditionError("behind")}, job.now);
  CHECK(job.core.state() == v1::JOB_STOPPING);
  job.Pass(0.25);
  CHECK(Sets(job) == std::vector<Ranks>{{0, 1, 2}});
  job.FinishSaving();
  CHECK(job.core.state() == v1::JOB_FINISHED);
}

TEST_CASE("committed sets: a server that is back is told the latest set") {
  Scenario job(Options(3, 0, v1::WORKER_LOSS_CONTINUE));
  job.Start();
  HeldByAll(job, 0, {0, 1, 2});
  CHECK(Sets(job).size() == 1);
  for (int i = 0; i < 4 * 31; ++i) {
    job.now += std::chrono::milliseconds(250);
    for (const uint32_t rank : {0u, 1u, 2u}) job.Beat(rank).IgnoreError();
    job.ServerBeat(0).IgnoreError();
    job.core.Tick(job.now);
  }
  CHECK(Sets(job).empty());
  job.ServerBeat(1).IgnoreError();
  CHECK(Sets(job) == std::vector<Ranks>{{0, 1, 2}});
}

TEST_CASE("committed sets: who speaks of another generation or in a job in lockstep is refused") {
  Scenario job(Options(3, 1, v1::WORKER_LOSS_WAIT));
  job.Start();
  ++job.generation;
  CHECK(absl::IsFailedPrecondition(Held(job, 0, 0, {0, 1})));
  Scenario lockstep(JobShape{});
  lockstep.Start();
  CHECK(absl::IsInvalidArgument(Held(lockstep, 0, 0, {0, 1})));
}

}  // namespace
}  // namespace leeway::committed_sets
