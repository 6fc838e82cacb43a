#include "worker/client/transit_window.h"

#include <chrono>

#include "tests/catch.h"

namespace leeway {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kMiB = 1 << 20;

TEST_CASE("Two messages may always be under way, whatever their size and the link") {
  TransitWindow window;
  Time now{};
  CHECK(window.Admits());
  window.OnSent(100 * kMiB, now);
  CHECK(window.Admits());
  window.OnSent(100 * kMiB, now);
  CHECK_FALSE(window.Admits());
  window.OnArrived(100 * kMiB, now + milliseconds(1));
  CHECK(window.Admits());
}

TEST_CASE("On a slow link no more is under way than it moves in ten milliseconds") {
  TransitWindow window;
  Time now{};
  // 1 MiB in 8 ms: 131 MB/s.
  for (int i = 0; i < 100; ++i) {
    window.OnSent(kMiB, now);
    now += milliseconds(8);
    window.OnArrived(kMiB, now);
  }
  CHECK(window.rate() == Approx(kMiB / 0.008).epsilon(0.01));
  window.OnSent(kMiB, now);
  window.OnSent(kMiB, now);
  CHECK_FALSE(window.Admits());
}

TEST_CASE("A fast link takes many, and a link that becomes slow is noticed") {
  TransitWindow window;
  Time now{};
  const auto move = [&](Duration took) {
    window.OnSent(kMiB, now);
    now += took;
    window.OnArrived(kMiB, now);
  };
  for (int i = 0; i < 1000; ++i) move(std::chrono::microseconds(200));
  for (int i = 0; i < 12; ++i) {
    CHECK(window.Admits());
    window.OnSent(kMiB, now);
  }
  for (int i = 0; i < 12; ++i) window.OnArrived(kMiB, now);
  // Two seconds of 10 ms each.
  for (int i = 0; i < 200; ++i) move(milliseconds(10));
  CHECK(window.rate() < 1.2 * kMiB / 0.01);
}

TEST_CASE("Time in which nothing is under way does not count") {
  TransitWindow window;
  Time now{};
  for (int i = 0; i < 10; ++i) {
    window.OnSent(kMiB, now);
    now += milliseconds(1);
    window.OnArrived(kMiB, now);
    now += std::chrono::seconds(5);
  }
  CHECK(window.rate() == Approx(kMiB / 0.001).epsilon(0.01));
}

}  // namespace
}  // namespace leeway
