#include "common/interval_set.h"

#include <set>
#include <vector>

#include "common/philox.h"
#include "tests/catch.h"

namespace leeway::interval_set {
namespace {

using Runs = std::vector<Interval>;

TEST_CASE("intervals: what touches becomes one run, what is removed splits it") {
  IntervalSet set;
  set.Add({0, 4});
  set.Add({8, 10});
  set.Add({4, 8});
  CHECK(set.runs() == Runs{{0, 10}});
  CHECK(set.Remove({3, 5}) == Runs{{3, 5}});
  CHECK(set.runs() == Runs{{0, 3}, {5, 10}});
  CHECK(set.Remove({2, 6}) == Runs{{2, 3}, {5, 6}});
  CHECK(set.TakeFirst(1) == Interval{0, 1});
  CHECK(set.TakeFirst(9) == Interval{1, 2});
  CHECK(set.lowest() == 6);
}

TEST_CASE("intervals: empty and reversed ones are nothing") {
  IntervalSet set;
  set.Add({4, 4});
  set.Add({4, 2});
  CHECK(set.empty());
  CHECK_FALSE(set.TakeFirst(1));
  set.Add({1, 3});
  CHECK(set.Remove({3, 1}).empty());
  CHECK(set.size() == 2);
}

TEST_CASE("intervals: like a set of numbers, in a thousand random steps") {
  RandomStream draws(3, RandomPurpose::kEmulate, {5});
  IntervalSet set;
  std::set<uint64_t> numbers;
  for (int step = 0; step < 1000; ++step) {
    const uint64_t first = draws.Below(60);
    const uint64_t end = first + draws.Below(8);
    if (draws.Below(2) == 0) {
      set.Add({first, end});
      for (uint64_t i = first; i < end; ++i) numbers.insert(i);
    } else {
      uint64_t removed = 0;
      for (const Interval& part : set.Remove({first, end})) removed += part.size();
      size_t expected = 0;
      for (uint64_t i = first; i < end; ++i) expected += numbers.erase(i);
      CHECK(removed == expected);
    }
    std::set<uint64_t> held;
    const Runs runs = set.runs();
    for (size_t i = 0; i < runs.size(); ++i) {
      for (uint64_t n = runs[i].first; n < runs[i].end; ++n) held.insert(n);
      if (i > 0) CHECK(runs[i - 1].end < runs[i].first);
    }
    REQUIRE(held == numbers);
    REQUIRE(set.size() == numbers.size());
  }
}

}  // namespace
}  // namespace leeway::interval_set
