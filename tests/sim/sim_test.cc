// Runs a few thousand schedules each time; leeway_sim runs a million (README.md). For each promise
// there is also a driver that breaks it, and the simulator must find that bug.

#include "tests/catch.h"
#include "tests/sim/exhaustive.h"
#include "tests/sim/world.h"

namespace leeway::sim {
namespace {

// How many schedules the search for a bug may try: ten times what the rarest bug needs, so that
// other draws do not fail the test. The search ends at the first find.
constexpr uint64_t kUntilFound = 20'000;
// These bugs need a server that dies at the right moment, sometimes two.
constexpr uint64_t kUntilFoundWithReplicas = 500'000;

Counts RunAll(uint64_t schedules, const Wanted& wanted, uint64_t first = 0) {
  Counts sum;
  for (uint64_t seed = first; seed < first + schedules; ++seed) {
    World world(seed, wanted);
    INFO("leeway_sim --trace --seed "
         << seed << (wanted.sets ? " --sets" : "") << (wanted.replicas ? " --replicas" : "")
         << (wanted.resizes ? " --resizes" : "") << (wanted.whole ? " --whole" : ""));
    REQUIRE(world.Run() == "");
    sum += world.context().counts;
  }
  return sum;
}

TEST_CASE("no schedule of servers and workers breaks a promise") {
  const Counts sum = RunAll(150'000, {});
  // The schedules reach the situations that they are for.
  CHECK(sum.duplicates > 10'000);
  CHECK(sum.fenced > 10'000);
  CHECK(sum.waits_refused > 10'000);
  CHECK(sum.waits_reminded > 10'000);
  CHECK(sum.previous_reads > 10'000);
  CHECK(sum.rejected > 1000);
  CHECK(sum.cuts > 100'000);
  CHECK(sum.set_lives > 10'000);
  CHECK(sum.lives > 150'000);
}

TEST_CASE("no schedule with the whole coordinator breaks a promise") {
  const Counts sum = RunAll(20'000, {.whole = true});
  CHECK(sum.manifests > 1000);
  CHECK(sum.stopped > 100);
  CHECK(sum.went_back > 500);
  CHECK(sum.extended > 500);
}

TEST_CASE("no schedule with replicas breaks a promise") {
  const Counts sum = RunAll(20'000, {.whole = true, .replicas = true});
  CHECK(sum.pushes > 10'000);
  CHECK(sum.held_back > 1000);
  CHECK(sum.take_overs > 500);
  CHECK(sum.taken_up > 50);
  CHECK(sum.gone > 500);
  CHECK(sum.leases_over > 100);
  CHECK(sum.streams_broken > 1000);
}

TEST_CASE("no schedule with committed sets breaks a promise") {
  for (const bool replicas : {false, true}) {
    const Counts sum = RunAll(10'000, {.whole = true, .replicas = replicas, .sets = true});
    CHECK(sum.pushes > 5000);
    CHECK(sum.sets > 10'000);
    CHECK(sum.smaller_sets > 1000);
    CHECK(sum.late > 1000);
    CHECK(sum.rejoined > 1000);
  }
}

TEST_CASE("no schedule with another number of servers breaks a promise") {
  for (const bool replicas : {false, true}) {
    for (const bool sets : {false, true}) {
      const Wanted wanted = {.whole = true, .replicas = replicas, .sets = sets, .resizes = true};
      const Counts sum = RunAll(5000, wanted);
      CHECK(sum.pushes > 2000);
      CHECK(sum.resized > 500);
      CHECK(sum.servers_removed > 250);
      CHECK(sum.drained > 150);
      CHECK(sum.take_overs > 500);
    }
  }
}

// Each was found among hundreds of thousands of schedules; README.md says what it showed.
TEST_CASE("schedules that broke a promise once keep it") {
  RunAll(1, {.whole = true}, 1'045'427);
  RunAll(1, {.whole = true, .replicas = true, .resizes = true}, 1'043'991);
  RunAll(1, {.whole = true, .sets = true, .resizes = true}, 1'004'183);
  RunAll(1, {.whole = true, .replicas = true, .sets = true, .resizes = true}, 1'027'173);
}

TEST_CASE("the same seed is the same schedule") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    World first(seed, {});
    World second(seed, {});
    CHECK(first.Run() == second.Run());
    CHECK(first.context().counts.events == second.context().counts.events);
    CHECK(first.context().now == second.context().now);
  }
}

// Where the search for a bug begins: at the first schedule that shows it, if that one is late. If
// the simulator's draws change, the search goes on from there, and `leeway_sim --bug` prints the
// new first schedule.
uint64_t FirstOf(Bug bug) {
  switch (bug) {
    case Bug::kForgetBegun:
      return 1'609;
    case Bug::kNoLastState:
      return 1'955;
    case Bug::kLeaseIgnored:
      return 14'794;
    case Bug::kSinceEpochIgnored:
      return 3'506;
    case Bug::kAttachAhead:
      return 16'014;
    case Bug::kHintBelieved:
      return 74'137;
    case Bug::kHandOverUnheard:
      return 3'743;
    default:
      return 0;
  }
}

bool IsFound(Bug bug, uint64_t first) {
  Wanted wanted = InfoOf(bug).where;
  wanted.bug = bug;
  const bool moves = wanted.replicas || wanted.resizes;
  const uint64_t end = first + (moves ? kUntilFoundWithReplicas : kUntilFound);
  uint64_t seed = first;
  while (seed < end && World(seed, wanted).Run().empty()) ++seed;
  return seed < end;
}

TEST_CASE("each broken promise is found") {
  for (uint32_t i = 1; i < kBugs; ++i) {
    const auto bug = static_cast<Bug>(i);
    INFO(InfoOf(bug).name << ": " << InfoOf(bug).what);
    CHECK(IsFound(bug, FirstOf(bug)));
  }
}

TEST_CASE("each broken promise is found from the first schedule on", "[.nightly]") {
  for (uint32_t i = 1; i < kBugs; ++i) {
    const auto bug = static_cast<Bug>(i);
    INFO(InfoOf(bug).name << ": " << InfoOf(bug).what);
    CHECK(IsFound(bug, 0));
  }
}

TEST_CASE("no order of events of a small world breaks a promise") {
  const Exhausted sync = Exhaust({.mode = Consistency::kSync}, 1'000'000);
  INFO(sync.violation);
  CHECK(sync.violation.empty());
  CHECK(sync.complete);
  CHECK(sync.states > 100'000);
  for (const Consistency mode : {Consistency::kBounded, Consistency::kAsync}) {
    // Visits only the first 50,000 of the states.
    CHECK(Exhaust({.mode = mode}, 50'000).violation.empty());
  }
}

TEST_CASE("the search of a small world finds what is broken, and says how") {
  for (const Bug bug : {Bug::kIgnoreDuplicates, Bug::kNoFence, Bug::kArrivalOrder}) {
    const Exhausted found = Exhaust({.mode = Consistency::kSync, .bug = bug}, 1'000'000);
    INFO(InfoOf(bug).name);
    CHECK_FALSE(found.violation.empty());
    CHECK(found.trace.size() > 1);
  }
}

}  // namespace
}  // namespace leeway::sim
