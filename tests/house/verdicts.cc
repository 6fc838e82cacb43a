// Test cases with every outcome, which verdicts.py runs one by one and together.
#include "tests/skip.h"

namespace leeway {
namespace {

TEST_CASE("passes") { CHECK(true); }

TEST_CASE("passes too") { CHECK(true); }

TEST_CASE("skips") { SKIP("it lacks something"); }

TEST_CASE("skips in a function") {
  const auto look = []() -> int { SKIP("it lacks something else"); };
  const int found = look();
  CHECK(found == 0);
}

TEST_CASE("skips in its second section") {
  SECTION("first") { CHECK(true); }
  SECTION("second") { SKIP("the second needs more"); }
}

TEST_CASE("fails") { CHECK(false); }

TEST_CASE("fails four times") {
  for (int i = 0; i < 4; ++i) CHECK(i < 0);
}

TEST_CASE("fails and skips") {
  CHECK(false);
  SKIP("too late");
}

TEST_CASE("throws") { throw 1; }

}  // namespace
}  // namespace leeway
