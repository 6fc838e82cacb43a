// How attention rotates by position, on a backend alone.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/worker/model/support.h"

namespace leeway::testing::attention {
namespace {

TEST_CASE("turned by position, attention depends on how far apart tokens are") {
  // The same two tokens at positions 0, 1 and at positions 3, 4: all others have a value of zero.
  auto backend = TestBackend();
  AttentionShape shape{.positions = 8, .heads = 2, .width = 4, .causal = true};
  std::vector<float> qkv(shape.positions * shape.qkv());
  const std::vector<float> token = RandomValues(shape.qkv(), 1);
  for (size_t t = 0; t < shape.positions; ++t) {
    std::copy(token.begin(), token.end(), qkv.begin() + static_cast<long>(t * shape.qkv()));
  }
  backend->Rotate(shape, 1, false, qkv.data());
  const auto product = [&](size_t query, size_t key) {
    const float* q = qkv.data() + query * shape.qkv();
    const float* k = qkv.data() + key * shape.qkv() + shape.channels();
    return std::inner_product(q, q + shape.width, k, 0.0);
  };
  for (size_t apart = 0; apart < 4; ++apart) {
    CHECK(product(apart, 0) == Approx(product(apart + 4, 4)).epsilon(1e-4));
  }
  CHECK(std::abs(product(1, 0) - product(3, 0)) > 1e-3);
  backend->Rotate(shape, 1, true, qkv.data());
  for (size_t t = 0; t < shape.positions; ++t) {
    for (size_t i = 0; i < shape.qkv(); ++i) {
      CHECK(qkv[t * shape.qkv() + i] == Approx(token[i]).margin(1e-5));
    }
  }
}

}  // namespace
}  // namespace leeway::testing::attention
