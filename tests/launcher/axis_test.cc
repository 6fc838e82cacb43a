#include "launcher/report/axis.h"

#include <cmath>
#include <limits>

#include "tests/catch.h"

namespace leeway::axis {
namespace {

std::vector<std::string> Labels(const Axis& axis) {
  std::vector<std::string> labels;
  for (const Axis::Tick& tick : axis.ticks()) labels.push_back(tick.label);
  return labels;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("A linear axis widens to round ticks") {
  const Axis axis = Axis::Linear(0.03, 0.97, 100, 0, 5);
  CHECK(Labels(axis) == Strings{"0", "0.2", "0.4", "0.6", "0.8", "1"});
  CHECK(axis(0) == Approx(100));
  CHECK(axis(1) == Approx(0));
  CHECK(axis(0.5) == Approx(50));
  CHECK(axis(17) == Approx(0));
}

TEST_CASE("An exact axis ends where the data end") {
  const Axis axis = Axis::Exact(0, 5, 0, 500, 5);
  CHECK(Labels(axis) == Strings{"0", "1", "2", "3", "4", "5"});
  CHECK(Axis::Exact(0, 4.9, 0, 490, 5)(4.9) == Approx(490));
  CHECK(Labels(Axis::Exact(0, 4.9, 0, 490, 5)) == Strings{"0", "1", "2", "3", "4"});
}

TEST_CASE("A logarithmic axis has its ticks at 1, 2 and 5") {
  const Axis axis = Axis::Logarithmic(0.01, 1, 200, 0);
  CHECK(Labels(axis) == Strings{"0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"});
  CHECK(axis(0.1) == Approx(100));
  CHECK(axis(0) == Approx(200));
}

TEST_CASE("An axis of the largest numbers has an end") {
  constexpr double kMost = std::numeric_limits<double>::max();
  for (const Axis& axis :
       {Axis::Linear(0, kMost, 0, 100, 5), Axis::Linear(-kMost, kMost, 0, 100, 5),
        Axis::Exact(0, kMost, 0, 100, 5), Axis::Logarithmic(1e-3, kMost, 0, 100),
        Axis::Logarithmic(kMost, INFINITY, 0, 100)}) {
    CHECK(axis.ticks().size() < 2000);
    CHECK(axis(kMost) == Approx(100));
  }
}

TEST_CASE("An axis of one value is still an axis") {
  for (const double value : {0.0, 1.0, -3.0, 1e-9}) {
    const Axis axis = Axis::Linear(value, value, 0, 100, 5);
    CHECK(axis.ticks().size() >= 2);
    CHECK(axis(value) >= 0);
    CHECK(axis(value) <= 100);
  }
}

TEST_CASE("An axis of any numbers has an end, and a handful of ticks") {
  const double largest = std::numeric_limits<double>::max();
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double high : {1e-320, 1e300, largest, infinite}) {
    for (const double low : {-infinite, -largest, 0.0, 1e-320, 1.0, 1e299}) {
      CHECK(Axis::Linear(low, high, 100, 0, 5).ticks().size() < 50);
      CHECK(Axis::Exact(low, high, 0, 100, 10).ticks().size() < 50);
      if (low > 0) CHECK(Axis::Logarithmic(low, high, 100, 0).ticks().size() < 30);
    }
  }
}

}  // namespace leeway::axis
