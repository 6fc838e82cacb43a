#include "worker/formats/axis_order.h"

#include <numeric>

#include "tests/catch.h"

namespace leeway::axis_order {
namespace {

std::vector<float> Counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST_CASE("a matrix is transposed") {
  const AxisOrder axes{.sides = {2, 3}, .order = {1, 0}};
  CHECK(axes.file_sides() == std::vector<uint64_t>{3, 2});
  std::vector<float> file(6);
  ToFile(axes, Counting(6), file);
  CHECK(file == std::vector<float>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("a kernel goes to the file element by element, and comes back") {
  const AxisOrder axes{.sides = {2, 3, 4, 5}, .order = {3, 2, 0, 1}};
  const std::vector<float> model = Counting(120);
  std::vector<float> file(120), back(120);
  ToFile(axes, model, file);
  for (size_t y = 0; y < 2; ++y) {
    for (size_t x = 0; x < 3; ++x) {
      for (size_t c = 0; c < 4; ++c) {
        for (size_t f = 0; f < 5; ++f) {
          CHECK(file[((f * 4 + c) * 2 + y) * 3 + x] == model[((y * 3 + x) * 4 + c) * 5 + f]);
        }
      }
    }
  }
  FromFile(axes, file, back);
  CHECK(back == model);
}

TEST_CASE("as it is, nothing moves, a tensor of no axes has one element") {
  std::vector<float> file(6), one(1);
  ToFile(AxisOrder::AsIs({3, 2}), Counting(6), file);
  CHECK(file == Counting(6));
  ToFile(AxisOrder::AsIs({}), std::vector<float>{7}, one);
  CHECK(one[0] == 7);
}

}  // namespace
}  // namespace leeway::axis_order
