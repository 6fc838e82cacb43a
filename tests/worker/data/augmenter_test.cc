#include "worker/data/augmenter.h"

#include <map>

#include "tests/worker/data/data_test_util.h"

namespace leeway::augmenter {
namespace {

using absl::StatusCode;
using Image = std::vector<float>;

Augmenter Make(const std::string& options, ImageShape shape) {
  absl::StatusOr<Augmenter> augmenter = Augmenter::Create(FromText<v1::Augment>(options), shape);
  REQUIRE(augmenter.ok());
  return *augmenter;
}

// Returns how often each result came out of `count` augmentations of `image`.
std::map<Image, int> Results(const Augmenter& augmenter, const Image& image, int count) {
  std::map<Image, int> results;
  RandomStream draws(1, RandomPurpose::kAugment);
  Image out(image.size());
  for (int i = 0; i < count; ++i) {
    augmenter.Apply(image.data(), draws, out.data());
    ++results[out];
  }
  return results;
}

TEST_CASE("A flip mirrors pixels, not channels, half of the time") {
  const Image image = {1, 2, 3, 4, 5, 6, 7, 8};  // 2 x 2 x 2
  const auto results = Results(Make("flip: true", {2, 2, 2}), image, 1000);
  REQUIRE(results.size() == 2);
  CHECK(results.count(image) == 1);
  REQUIRE(results.count({3, 4, 1, 2, 7, 8, 5, 6}) == 1);
  CHECK(std::abs(results.at(image) - 500) < 60);
}

TEST_CASE("A crop moves the image by up to the padding each way and fills with zeros") {
  const Image image = {1, 2, 3, 4};  // 2 x 2 x 1
  const auto results = Results(Make("crop_padding: 1", {2, 2, 1}), image, 9000);
  CHECK(results.size() == 9);
  for (const Image& moved :
       {Image{1, 2, 3, 4}, Image{0, 0, 1, 2}, Image{0, 0, 0, 1}, Image{0, 1, 0, 3},
        Image{2, 0, 4, 0}, Image{4, 0, 0, 0}, Image{3, 4, 0, 0}}) {
    REQUIRE(results.count(moved) == 1);
    CHECK(std::abs(results.at(moved) - 1000) < 150);
  }
}

TEST_CASE("Cutout sets a square around a drawn place to zero, cut off at the border") {
  const Image image = {1, 2, 3, 4, 5, 6, 7, 8, 9};  // 3 x 3 x 1
  const auto one = Results(Make("cutout: 1", {3, 3, 1}), image, 9000);
  CHECK(one.size() == 9);
  for (const auto& [result, count] : one) {
    CHECK(std::count(result.begin(), result.end(), 0) == 1);
    CHECK(std::abs(count - 1000) < 150);
  }
  const auto three = Results(Make("cutout: 3", {3, 3, 1}), image, 900);
  CHECK(three.size() == 9);
  CHECK(three.count({0, 0, 3, 0, 0, 6, 7, 8, 9}) == 1);
  CHECK(three.count(Image(9, 0)) == 1);
  CHECK(three.count({1, 0, 0, 4, 0, 0, 7, 0, 0}) == 1);
  // All channels of a pixel are removed together.
  const auto channels = Results(Make("cutout: 1", {1, 2, 2}), {1, 2, 3, 4}, 100);
  CHECK(channels.size() == 2);
  CHECK(channels.count({0, 0, 3, 4}) == 1);
}

TEST_CASE("Flip and crop together give each combination") {
  const Image image = {1, 2, 3, 4, 5, 6, 7, 8, 9};  // 3 x 3 x 1
  const auto results = Results(Make("flip: true crop_padding: 1", {3, 3, 1}), image, 5000);
  CHECK(results.size() == 18);
  CHECK(results.count({3, 2, 1, 6, 5, 4, 9, 8, 7}) == 1);
  CHECK(results.count({2, 1, 0, 5, 4, 0, 8, 7, 0}) == 1);
  CHECK(results.count({0, 0, 0, 0, 3, 2, 0, 6, 5}) == 1);
}

TEST_CASE("Augmentation of what is no image, or with more padding than image, is an error") {
  const auto create = [](const std::string& options, ImageShape shape) {
    return Augmenter::Create(FromText<v1::Augment>(options), shape);
  };
  CHECK(create("", {1, 1, 5})->none());
  RequireError(create("flip: true", {1, 1, 5}), StatusCode::kInvalidArgument,
               {"data.augment", "5 features"});
  RequireError(create("crop_padding: 8", {8, 9, 1}), StatusCode::kInvalidArgument,
               {"crop_padding", "8x9x1"});
}

}  // namespace
}  // namespace leeway::augmenter
