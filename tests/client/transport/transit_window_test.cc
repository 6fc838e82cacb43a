#include "client/transport/transit_window.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "tests/catch.h"

namespace leeway::transit_window {
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
  window.OnArrived(100 * kMiB, now, now + milliseconds(1));
  CHECK(window.Admits());
}

TEST_CASE("On a slow link no more is under way than it moves in ten milliseconds") {
  TransitWindow window;
  Time now{};
  // 1 MiB in 8 ms: 131 MB/s.
  for (int i = 0; i < 100; ++i) {
    window.OnSent(kMiB, now);
    now += milliseconds(8);
    window.OnArrived(kMiB, now - milliseconds(8), now);
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
    window.OnArrived(kMiB, now - took, now);
  };
  for (int i = 0; i < 1000; ++i) move(std::chrono::microseconds(200));
  for (int i = 0; i < 12; ++i) {
    CHECK(window.Admits());
    window.OnSent(kMiB, now);
  }
  for (int i = 0; i < 12; ++i) window.OnArrived(kMiB, now, now);
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
    window.OnArrived(kMiB, now - milliseconds(1), now);
    now += std::chrono::seconds(5);
  }
  CHECK(window.rate() == Approx(kMiB / 0.001).epsilon(0.01));
}

TEST_CASE("How many messages fill a link goes by large ones, whatever was sent last") {
  TransitWindow window;
  CHECK(window.Filling() == 0);
  Time now{};
  // 10 MiB in a tenth of a second; a quarter more than that fills the link.
  for (int i = 0; i < 10; ++i) window.OnSent(kMiB, now);
  now += milliseconds(100);
  for (int i = 0; i < 10; ++i) window.OnArrived(kMiB, now - milliseconds(100), now);
  CHECK(window.Filling() == 13);
  window.OnSent(64, now);
  CHECK(window.Filling() == 13);
}

TEST_CASE("A server that has moved is measured anew") {
  TransitWindow window;
  Time now{};
  for (int i = 0; i < 100; ++i) {
    window.OnSent(kMiB, now);
    window.OnArrived(kMiB, now, now + milliseconds(1));
    now += milliseconds(1);
  }
  CHECK(window.Filling() == 2);
  window.Forget();
  CHECK(window.Filling() == 0);
  CHECK(window.rate() == 0);
  for (int i = 0; i < 10; ++i) window.OnSent(kMiB, now);
  now += milliseconds(100);
  for (int i = 0; i < 10; ++i) window.OnArrived(kMiB, now - milliseconds(100), now);
  CHECK(window.Filling() == 13);
}

// A link with this rate in bytes a second. Besides the time of its bytes, a message and the word of
// its arrival take `round_trip`. The sender always has more to send.
struct Link {
  double bytes_per_second;
  Duration round_trip;
  uint64_t message_bytes;
  // The first message is shorter, as a model's last block is short and its gradient is ready first.
  uint64_t first_bytes;
};
Duration TimeOf(uint64_t bytes, const Link& link) {
  return FromSeconds(static_cast<double>(bytes) / link.bytes_per_second);
}

struct Use {
  // The share of the link's rate that is used once the window has settled.
  double share = 0;
  // How long a message then waits for earlier ones, at most.
  double queue_seconds = 0;
};

Use Saturate(const Link& link) {
  constexpr uint32_t kWindow = 8;
  constexpr Time kRunIn = Time() + std::chrono::seconds(10);
  constexpr Time kEnd = kRunIn + std::chrono::seconds(10);
  struct Message {
    Time sent, arrived;
  };
  std::deque<Message> under_way;
  TransitWindow window;
  Use use;
  uint64_t moved = 0;
  Time now{}, free{};
  // A refusal says nothing about the way there.
  window.OnSent(link.message_bytes, now);
  window.OnLost(link.message_bytes, now + std::chrono::microseconds(100));
  window.OnSent(link.first_bytes, now);
  free = now + TimeOf(link.first_bytes, link);
  now = free + link.round_trip;
  window.OnArrived(link.first_bytes, Time(), now);
  while (now < kEnd) {
    while (window.Admits() && under_way.size() < std::max(kWindow, window.Filling())) {
      window.OnSent(link.message_bytes, now);
      const Time begins = std::max(now, free);
      if (now >= kRunIn) use.queue_seconds = std::max(use.queue_seconds, Seconds(begins - now));
      free = begins + TimeOf(link.message_bytes, link);
      under_way.push_back({now, free + link.round_trip});
    }
    const Message first = under_way.front();
    under_way.pop_front();
    now = first.arrived;
    window.OnArrived(link.message_bytes, first.sent, now);
    if (now >= kRunIn) moved += link.message_bytes;
  }
  use.share = static_cast<double>(moved) / Seconds(now - kRunIn) / link.bytes_per_second;
  return use;
}

TEST_CASE("A link is filled, however long it is, and what waits in it is little") {
  for (const double rate : {2.5e6, 12.5e6, 125e6, 1.25e9}) {
    for (const Duration round_trip : {Duration(std::chrono::microseconds(100)),
                                      Duration(milliseconds(5)), Duration(milliseconds(100))}) {
      // At most 16 MiB are ever in flight.
      if (rate * Seconds(round_trip) > 14e6) continue;
      for (const uint64_t bytes : {64 << 10, 1 << 20, 4 << 20}) {
        for (const uint64_t first : {uint64_t{40}, bytes / 10, bytes}) {
          const Use use = Saturate({rate, round_trip, bytes, first});
          INFO(rate << " bytes/s, round trip " << Seconds(round_trip) << " s, messages of " << bytes
                    << ", the first of " << first << ": " << use.share << ", " << use.queue_seconds
                    << " s");
          CHECK(use.share > 0.95);
          const double message = static_cast<double>(bytes) / rate;
          CHECK(use.queue_seconds < 0.011 + 0.25 * Seconds(round_trip) + 2 * message);
        }
      }
    }
  }
}

}  // namespace
}  // namespace leeway::transit_window
