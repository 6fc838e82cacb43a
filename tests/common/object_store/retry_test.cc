#include "common/object_store/retry.h"

#include "tests/catch.h"

namespace leeway::retry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

RandomStream Draws(uint64_t call) { return {1, RandomPurpose::kRetry, {call}}; }

TEST_CASE("pauses grow twofold, are drawn below their bound, and end with the time") {
  const StoreRetryLimits limits{
      .total = seconds(1000), .pause_first = milliseconds(100), .pause_max = seconds(2)};
  Duration longest[8] = {}, shortest[8];
  for (Duration& each : shortest) each = seconds(100);
  for (uint64_t call = 0; call < 200; ++call) {
    StoreRetry retry(limits, Draws(call));
    for (int i = 0; i < 8; ++i) {
      const auto pause = retry.PauseAfter(seconds(0), std::nullopt);
      REQUIRE(pause.has_value());
      longest[i] = std::max(longest[i], *pause);
      shortest[i] = std::min(shortest[i], *pause);
    }
  }
  const milliseconds bounds[] = {milliseconds(100),  milliseconds(200),  milliseconds(400),
                                 milliseconds(800),  milliseconds(1600), milliseconds(2000),
                                 milliseconds(2000), milliseconds(2000)};
  for (int i = 0; i < 8; ++i) {
    CAPTURE(i);
    CHECK(longest[i] < bounds[i]);
    CHECK(longest[i] > bounds[i] * 9 / 10);
    CHECK(shortest[i] < bounds[i] / 10);
  }
}

TEST_CASE("no attempt begins after the total") {
  StoreRetry retry({.total = seconds(10)}, Draws(0));
  CHECK(retry.PauseAfter(seconds(9), std::nullopt).has_value());
  CHECK_FALSE(retry.PauseAfter(seconds(10), std::nullopt).has_value());
  CHECK(retry.attempts() == 2);
}

TEST_CASE("what the store asks for is the least") {
  StoreRetry retry({.total = seconds(10)}, Draws(0));
  CHECK(retry.PauseAfter(seconds(0), seconds(5)) == Duration(seconds(5)));
  CHECK_FALSE(retry.PauseAfter(seconds(6), seconds(5)).has_value());
}

TEST_CASE("after many attempts nothing overflows") {
  StoreRetry retry({.total = seconds(1000)}, Draws(0));
  for (int i = 0; i < 100; ++i) {
    const auto pause = retry.PauseAfter(seconds(0), std::nullopt);
    CHECK((pause >= Duration::zero() && pause < Duration(seconds(10))));
  }
}

}  // namespace
}  // namespace leeway::retry
