// What happens to a gradient that is not finite, or too long.
#include "exchange/gradient_guard.h"

#include <limits>
#include <vector>

#include "tests/catch.h"
#include "tests/exchange/small_schema.h"

namespace leeway::gradient_guard {
namespace {

// Four trained elements in two tensors, and an averaged one.
v1::ModelSchema Schema() {
  return testing::SmallSchema(
      {{"dense_0/weight", 3}, {"dense_0/bias", 1}, {"batch_norm_1/mean", 1, 0.1}});
}

v1::Exchange Choice(v1::BadGradient on_bad, double max_norm = 0) {
  v1::Exchange exchange;
  exchange.mutable_gradient();
  exchange.set_on_bad_gradient(on_bad);
  if (max_norm > 0) exchange.set_max_norm(max_norm);
  return exchange;
}

using Values = std::vector<float>;
constexpr char kTooLong[] =
    "the gradient's norm is 5, but exchange.max_norm is 2.5; most of it is in dense_0/bias (4)";

TEST_CASE("a gradient that is no longer than it may be stays as it is") {
  Values values{3, 0, 0, 4, 100};
  for (const auto on_bad :
       {v1::BAD_GRADIENT_REJECT, v1::BAD_GRADIENT_CLIP, v1::BAD_GRADIENT_SKIP}) {
    const auto guarded = GuardGradient(Choice(on_bad, 5), Schema(), values);
    REQUIRE(guarded.ok());
    CHECK(guarded->verdict == GuardedGradient::kAsItIs);
    CHECK(values == Values{3, 0, 0, 4, 100});
  }
}

TEST_CASE("one that is too long is clipped, left out or refused, running statistics do not count") {
  Values values{3, 0, 0, 4, 100};
  const auto refused = GuardGradient(Choice(v1::BAD_GRADIENT_REJECT, 2.5), Schema(), values);
  CHECK(refused.status() == absl::OutOfRangeError(kTooLong));
  CHECK(values == Values{3, 0, 0, 4, 100});

  const auto clipped = GuardGradient(Choice(v1::BAD_GRADIENT_CLIP, 2.5), Schema(), values);
  REQUIRE(clipped.ok());
  CHECK(clipped->verdict == GuardedGradient::kClipped);
  CHECK(clipped->why == kTooLong);
  CHECK(values == Values{1.5, 0, 0, 2, 100});

  values = {3, 0, 0, 4, 100};
  const auto left_out = GuardGradient(Choice(v1::BAD_GRADIENT_SKIP, 2.5), Schema(), values);
  REQUIRE(left_out.ok());
  CHECK(left_out->verdict == GuardedGradient::kLeftOut);
  CHECK(left_out->why == kTooLong);
  CHECK(values == Values(5, 0));
}

TEST_CASE(
    "one that is not finite is left out or refused, naming the value, also where it would be "
    "clipped") {
  const float bad = GENERATE(std::numeric_limits<float>::infinity(), std::nanf(""));
  const size_t where = GENERATE(size_t{2}, size_t{4});
  Values values{1, 2, 3, 4, 5};
  values[where] = bad;
  const char* name = where == 2 ? "dense_0/weight[2]" : "batch_norm_1/mean[0]";
  const auto refused = GuardGradient(Choice(v1::BAD_GRADIENT_REJECT, 100), Schema(), values);
  CHECK(absl::IsOutOfRange(refused.status()));
  CHECK_THAT(std::string(refused.status().message()), Catch::Contains(name));
  const auto on_bad = GENERATE(v1::BAD_GRADIENT_CLIP, v1::BAD_GRADIENT_SKIP);
  const auto left_out = GuardGradient(Choice(on_bad, 100), Schema(), values);
  REQUIRE(left_out.ok());
  CHECK(left_out->verdict == GuardedGradient::kLeftOut);
  CHECK_THAT(left_out->why, Catch::Contains(name));
  CHECK(values == Values(5, 0));
}

TEST_CASE("a norm is found where the squares of its floats overflow") {
  Values values{3e30f, 0, 0, 4e30f, 0};
  const auto clipped = GuardGradient(Choice(v1::BAD_GRADIENT_CLIP, 5), Schema(), values);
  REQUIRE(clipped.ok());
  CHECK(values[0] == Approx(3));
  CHECK(values[3] == Approx(4));
}

}  // namespace
}  // namespace leeway::gradient_guard
