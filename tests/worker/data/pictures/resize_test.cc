#include "worker/data/pictures/resize.h"

#include <cmath>

#include "tests/worker/data/pictures/picture_files.h"

namespace leeway::resize {
namespace {

FileBytes Scaled(const Picture& picture, uint32_t height, uint32_t width) {
  FileBytes out(size_t{3} * height * width);
  ScaleAndCrop(picture, height, width, out.data());
  return out;
}

Picture Make(uint32_t height, uint32_t width,
             const std::function<int(uint32_t, uint32_t, uint32_t)>& value) {
  return {height, width, Pixels(height, width, 3, value)};
}

TEST_CASE("A picture covers the size with its proportions kept") {
  const auto covering = [](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const CoveringSize size = Covering(a, b, c, d);
    return std::pair(size.height, size.width);
  };
  CHECK(covering(100, 200, 50, 50) == std::pair(50u, 100u));
  CHECK(covering(200, 100, 50, 50) == std::pair(100u, 50u));
  CHECK(covering(3, 4, 30, 60) == std::pair(45u, 60u));
  CHECK(covering(375, 500, 224, 224) == std::pair(224u, 299u));
  CHECK(covering(1, 4096, 4096, 1) == std::pair(4096u, 16777216u));
}

TEST_CASE("A picture of the size asked for stays as it is") {
  const Picture picture = Make(9, 7, [](uint32_t y, uint32_t x, uint32_t c) {
    return static_cast<int>((y * 31 + x * 57 + c * 101) % 256);
  });
  CHECK(Scaled(picture, 9, 7) == picture.pixels);
}

TEST_CASE("The middle is cut out") {
  const auto column = [](uint32_t, uint32_t x, uint32_t) { return static_cast<int>(10 * x); };
  const FileBytes cut = Scaled(Make(4, 10, column), 4, 4);
  CHECK(cut == Pixels(4, 4, 3, [](uint32_t, uint32_t x, uint32_t) {
          return static_cast<int>(10 * (x + 3));
        }));
  const auto row = [](uint32_t y, uint32_t, uint32_t) { return static_cast<int>(10 * y); };
  CHECK(Scaled(Make(10, 4, row), 4, 4) == Pixels(4, 4, 3, [](uint32_t y, uint32_t, uint32_t) {
          return static_cast<int>(10 * (y + 3));
        }));
}

TEST_CASE("Shrinking takes the mean of what is covered, so stripes become grey") {
  const Picture stripes =
      Make(64, 64, [](uint32_t y, uint32_t x, uint32_t) { return (y + x) % 2 == 0 ? 0 : 200; });
  for (const uint8_t value : Scaled(stripes, 8, 8)) CHECK(std::abs(value - 100) <= 1);
  // A slope stays a slope.
  const Picture slope =
      Make(60, 60, [](uint32_t, uint32_t x, uint32_t) { return static_cast<int>(4 * x); });
  const FileBytes small = Scaled(slope, 20, 20);
  for (uint32_t x = 1; x < 19; ++x) CHECK(std::abs(small[3 * x] - 4 * (3 * x + 1.0)) <= 1);
}

// Expected values from Pillow 9.4: Image.fromarray(a).resize((5, 5), Image.BILINEAR), with a[y, x]
// = 16 y + 3 x of 4 x 4.
TEST_CASE("Enlarging interpolates as Pillow does") {
  const Picture picture =
      Make(4, 4, [](uint32_t y, uint32_t x, uint32_t) { return static_cast<int>(16 * y + 3 * x); });
  const FileBytes large = Scaled(picture, 5, 5);
  const FileBytes expected = {0,  2,  5,  7,  9,  11, 13, 16, 18, 20, 24, 26, 29,
                              31, 33, 37, 39, 42, 44, 46, 48, 50, 53, 55, 57};
  for (size_t i = 0; i < 25; ++i) CHECK(std::abs(large[3 * i] - expected[i]) <= 1);
}

}  // namespace
}  // namespace leeway::resize
