#include "common/loss_scale.h"

#include "tests/catch.h"

namespace leeway::loss_scale {
namespace {

using Entry = LossScaleHistory::Entry;

TEST_CASE("loss scale: it begins at 2^16, and doubles every 2000 clocks up to 2^24") {
  const LossScaleHistory history;
  CHECK(history.At(0) == 16);
  CHECK(history.At(1999) == 16);
  CHECK(history.At(2000) == 17);
  CHECK(history.At(15'999) == 23);
  CHECK(history.At(16'000) == 24);
  CHECK(history.At(uint64_t{1} << 40) == 24);
  CHECK(LossScaleOf(16) == 65536);
  CHECK(LossScaleOf(0) == 1);
}

TEST_CASE("loss scale: an overflow halves it from the next clock on, and the count begins anew") {
  LossScaleHistory history;
  CHECK(history.Halve(1500) == Entry{1501, 15});
  CHECK(history.At(1500) == 16);
  CHECK(history.At(1501) == 15);
  CHECK(history.At(3500) == 15);
  CHECK(history.At(3501) == 16);
  CHECK(history.Halve(3501) == Entry{3502, 15});
  // One halving after the other, down to 1.
  for (uint32_t left = 15; left-- > 0;) history.Halve(3502 + 14 - left);
  CHECK(history.At(3517) == 0);
}

TEST_CASE("loss scale: a life that has the entries finds the same scales, also of clocks before") {
  LossScaleHistory first;
  for (const uint64_t clock : {3, 4, 700, 5000}) first.Halve(clock);
  LossScaleHistory next;
  for (const Entry& entry : first.entries()) CHECK(next.Add(entry));
  CHECK(next == first);
  for (uint64_t clock = 0; clock < 8000; ++clock) REQUIRE(next.At(clock) == first.At(clock));
  // A halving that is found again is known, and keeps the later ones.
  CHECK(next.Halve(3) == first.entries()[0]);
  CHECK_FALSE(next.Add(first.entries()[2]));
  CHECK(next == first);
}

TEST_CASE("loss scale: what contradicts takes the place of all that came later") {
  LossScaleHistory history;
  for (const uint64_t clock : {3, 700, 5000}) history.Halve(clock);
  CHECK(history.Add({.clock = 600, .log2 = 14}));
  CHECK(history.entries() == std::vector<Entry>{{4, 15}, {600, 14}});
  CHECK(history.Add({.clock = 600, .log2 = 13}));
  CHECK(history.entries() == std::vector<Entry>{{4, 15}, {600, 13}});
}

TEST_CASE("loss scale: of many entries the newest are kept") {
  LossScaleHistory history;
  for (uint64_t i = 1; i <= 1000; ++i)
    history.Add({.clock = i, .log2 = static_cast<uint32_t>(i % 24)});
  REQUIRE(history.entries().size() == LossScaleHistory::kEntriesMax);
  CHECK(history.entries().back() == Entry{1000, 1000 % 24});
  CHECK(history.entries().front().clock == 1000 - LossScaleHistory::kEntriesMax + 1);
}

TEST_CASE("loss scale: that of steps halves at once and doubles after 2000 clean ones") {
  StepLossScale scale;
  CHECK(scale.factor() == 65536);
  for (int i = 0; i < 1999; ++i) scale.Keep();
  scale.Halve();
  CHECK(scale == StepLossScale{15, 0});
  for (int i = 0; i < 1999; ++i) scale.Keep();
  CHECK(scale == StepLossScale{15, 1999});
  scale.Keep();
  CHECK(scale == StepLossScale{16, 0});
  for (int i = 0; i < 20 * 2000; ++i) scale.Keep();
  CHECK(scale == StepLossScale{24, 0});
}

}  // namespace
}  // namespace leeway::loss_scale
