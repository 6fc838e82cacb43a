// How long a sync clock waits for workers that it could do without, which it learns from the last
// clocks.
#include "server/coordinator/core/straggler_grace.h"

#include <algorithm>
#include <vector>

#include "common/philox.h"
#include "server/coordinator/core/arrival_history.h"
#include "tests/catch.h"

namespace leeway::straggler_grace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Delays = std::vector<Duration>;

constexpr StragglerGrace::Rules kRules = {.deviations = 3, .limit = seconds(1)};

double Milliseconds(Duration duration) { return 1000 * Seconds(duration); }

Delays Of(std::initializer_list<double> delays_ms) {
  Delays delays;
  for (const double ms : delays_ms) delays.push_back(FromSeconds(ms / 1000));
  return delays;
}

// A grace, and the clocks that it has seen.
struct Clocks {
  explicit Clocks(const StragglerGrace::Rules& rules = kRules) : grace(rules) {
    grace.NextClock(now, 0, {});
  }
  // Passes a clock whose contributions took these delays; those beyond the grace did not come.
  void Pass(const Delays& delays, size_t enough) {
    std::vector<Time> arrivals;
    for (const Duration delay : delays) arrivals.push_back(now + delay);
    std::sort(arrivals.begin(), arrivals.end());
    const Time until = grace.Until(arrivals[enough - 1], enough);
    const Time end = std::min(until, arrivals.back());
    std::erase_if(arrivals, [end](Time at) { return at > end; });
    dropped += delays.size() - arrivals.size();
    now = end;
    grace.NextClock(now, arrivals.size(), arrivals);
  }
  // Returns how many milliseconds the next clock would wait after its first sufficient
  // contributions came at `enough`.
  double Wait(Duration enough) {
    const Time at = now + enough;
    const double wait = Milliseconds(grace.Until(at, 3) - at);
    grace.Stop();
    return wait;
  }

  StragglerGrace grace;
  Time now = Time(seconds(100));
  size_t dropped = 0;
};

TEST_CASE("arrivals: median and deviation of all that came in the last clocks") {
  ArrivalHistory history;
  history.Add(Of({10, 11, 12, 13}));
  CHECK_FALSE(history.Get());
  for (int i = 0; i < 2; ++i) history.Add(Of({10, 11, 12, 13}));
  history.Add(Of({14, 9, 10, 11}));
  // 9 10 10 10 10 11 11 |11| 11 12 ...: deviations 0 five times, 1 eight times, ...
  CHECK(history.Get() == ArrivalHistory::Usual{milliseconds(11),
                                               microseconds(1482) + std::chrono::nanoseconds(600)});
  for (size_t i = 0; i < ArrivalHistory::kClocksMax; ++i) history.Add(Of({5, 5}));
  CHECK(history.Get() == ArrivalHistory::Usual{milliseconds(5), {}});
}

TEST_CASE("arrivals: so many clocks are remembered, and no more, those without any are none") {
  ArrivalHistory history;
  history.Add(Of({1}));
  history.Add({});
  CHECK_FALSE(history.Get());
  history.Add(Of({1}));
  CHECK(history.Get());
  // The lower median of 32 is the sixteenth.
  for (size_t i = 0; i < 14; ++i) history.Add(Of({1}));
  for (size_t i = 0; i < 16; ++i) history.Add(Of({9}));
  CHECK(history.Get()->median == milliseconds(1));
  history.Add(Of({9}));
  CHECK(history.Get()->median == milliseconds(9));
}

TEST_CASE(
    "arrivals: as many delays as a clock keeps are all kept, of more the first and the last") {
  const auto rising = [](int count) {
    Delays delays;
    for (int i = 0; i < count; ++i) delays.push_back(milliseconds(i));
    return delays;
  };
  ArrivalHistory exact;
  for (int i = 0; i < 2; ++i) exact.Add(rising(64));
  CHECK(exact.Get()->median == milliseconds(31));
  CHECK(Milliseconds(exact.Get()->deviation) == Approx(1.4826 * 16));
  // Keeping every second of the delays gives 0, 2, 4, ... 126.
  ArrivalHistory thinned;
  for (int i = 0; i < 2; ++i) thinned.Add(rising(127));
  CHECK(thinned.Get()->median == milliseconds(62));
  CHECK(Milliseconds(thinned.Get()->deviation) == Approx(1.4826 * 32));
}

TEST_CASE("arrivals: of ten thousand workers a clock keeps a few that stand for all") {
  ArrivalHistory history;
  Delays delays;
  for (int i = 0; i < 10'000; ++i) delays.push_back(microseconds((i * 7919) % 10'000));
  for (int i = 0; i < 10; ++i) history.Add(delays);
  CHECK(Milliseconds(history.Get()->median) == Approx(5).margin(0.2));
  CHECK(Milliseconds(history.Get()->deviation) == Approx(1.4826 * 2.5).margin(0.2));
}

TEST_CASE("grace: while little is known every wait is as long as the job allows") {
  Clocks clocks;
  for (size_t i = 0; i < ArrivalHistory::kClocksMin; ++i) {
    CHECK(clocks.Wait(milliseconds(20)) == Approx(1000));
    clocks.Pass(Of({20, 20, 20, 20}), 3);
  }
  CHECK(clocks.Wait(milliseconds(20)) < 5);
}

TEST_CASE("grace: steady workers: the wait is short, but never nothing") {
  Clocks clocks;
  for (int i = 0; i < 40; ++i) clocks.Pass(Of({20, 20, 20, 20}), 3);
  CHECK(clocks.Wait(milliseconds(20)) == Approx(1));
  CHECK(clocks.Wait(milliseconds(25)) == Approx(1));
}

TEST_CASE("grace: one deviation is a grace, none is none") {
  for (const double deviations : {0.0, 1.0}) {
    Clocks clocks({.deviations = deviations, .limit = seconds(1)});
    for (int i = 0; i < 40; ++i) clocks.Pass(Of({20, 20, 20, 20}), 3);
    CHECK((clocks.Wait(milliseconds(20)) > 0) == (deviations > 0));
  }
}

TEST_CASE("grace: bursty workers get what they usually take, and few are dropped") {
  Clocks clocks;
  RandomStream draws(7, RandomPurpose::kEmulate, {1});
  for (int i = 0; i < 400; ++i) {
    Delays delays;
    for (int worker = 0; worker < 4; ++worker) {
      delays.push_back(milliseconds(20) + microseconds(draws.Below(10'000)));
    }
    clocks.Pass(delays, 3);
  }
  // Without a grace one of four would be dropped each time.
  CHECK(clocks.dropped <= 20);
}

TEST_CASE("grace: one worker that is always five times slow neither moves it nor is waited for") {
  Clocks clocks;
  for (int i = 0; i < 40; ++i) clocks.Pass(Of({20, 21, 22, 100}), 3);
  // The clock waited for it while nothing was known.
  CHECK(clocks.dropped == 40 - ArrivalHistory::kClocksMin);
  CHECK(clocks.Wait(milliseconds(22)) < 5);
}

TEST_CASE("grace: where nobody ever comes it waits seldom, and again as soon as somebody did") {
  Clocks clocks;
  for (int i = 0; i < 16; ++i) clocks.Pass(Of({20, 25, 30, 31}), 3);
  const double usual = clocks.Wait(milliseconds(22));
  CHECK(usual > 5);
  for (uint64_t i = 0; i < StragglerGrace::kVainMax; ++i) {
    CHECK(clocks.Wait(milliseconds(22)) > 5);
    clocks.Pass(Of({20, 21, 22, 500}), 3);
  }
  int tries = 0;
  for (uint64_t i = 0; i < 2 * StragglerGrace::kTryEvery; ++i) {
    if (clocks.Wait(milliseconds(22)) > 5) ++tries;
    clocks.Pass(Of({20, 21, 22, 500}), 3);
  }
  CHECK(tries == 2);
  // This is within the least time that the clock always waits.
  clocks.Pass(Of({20, 21, 22, 22.5}), 3);
  CHECK(clocks.Wait(milliseconds(20)) > 2);
}

TEST_CASE("grace: a few bad clocks do not move it") {
  Clocks clocks;
  for (int i = 0; i < 40; ++i) {
    clocks.Pass(i % 8 == 7 ? Of({900, 900, 900, 900}) : Of({20, 21, 22, 23}), 3);
  }
  CHECK(clocks.Wait(milliseconds(22)) < 10);
}

TEST_CASE("grace: it follows when all become slower, and when they are fast again") {
  Clocks clocks;
  for (int i = 0; i < 40; ++i) clocks.Pass(Of({20, 22, 24, 26}), 3);
  const double before = clocks.Wait(milliseconds(24));
  for (int i = 0; i < 40; ++i) clocks.Pass(Of({200, 220, 240, 260}), 3);
  CHECK(clocks.Wait(milliseconds(240)) > 5 * before);
  for (int i = 0; i < 40; ++i) clocks.Pass(Of({20, 22, 24, 26}), 3);
  CHECK(clocks.Wait(milliseconds(24)) == Approx(before).margin(1));
}

TEST_CASE("grace: no wait is longer than the job allows, nor is there any where it wants none") {
  Clocks wild({.deviations = 1000, .limit = milliseconds(50)});
  for (int i = 0; i < 10; ++i) wild.Pass(Of({10, 20, 40, 80}), 3);
  CHECK(wild.Wait(milliseconds(20)) == Approx(50));
  Clocks none({.deviations = 0, .limit = seconds(1)});
  CHECK(none.Wait(milliseconds(20)) == 0);
}

TEST_CASE("grace: a wait ends where it was said to, however often it is asked for") {
  StragglerGrace grace(kRules);
  const Time now = Time(seconds(5));
  CHECK_FALSE(grace.until());
  CHECK(grace.Until(now, 3) == now + seconds(1));
  CHECK(grace.Until(now + milliseconds(300), 3) == now + seconds(1));
  grace.NextClock(now + seconds(1), 3, {});
  CHECK_FALSE(grace.until());
}

TEST_CASE("grace: a wait in which somebody came was not in vain, whenever he says he came") {
  Clocks clocks;
  for (int i = 0; i < 16; ++i) clocks.Pass(Of({20, 25, 30, 31}), 3);
  for (uint64_t i = 0; i < 2 * StragglerGrace::kVainMax; ++i) {
    // The last contribution was there in time, but its server's message came after the wait had
    // begun.
    std::vector<Time> arrivals;
    for (const Duration delay : Of({20, 25, 30, 31})) arrivals.push_back(clocks.now + delay);
    clocks.grace.Until(clocks.now + milliseconds(33), 3);
    clocks.now += milliseconds(34);
    clocks.grace.NextClock(clocks.now, 4, arrivals);
  }
  CHECK(clocks.Wait(milliseconds(22)) > 5);
}

}  // namespace
}  // namespace leeway::straggler_grace
