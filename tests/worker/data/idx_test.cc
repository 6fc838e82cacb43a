#include "worker/data/idx.h"

#include "tests/worker/data/data_test_util.h"

namespace leeway::idx {
namespace {

using absl::StatusCode;
constexpr v1::Loss kSoftmax = v1::LOSS_SOFTMAX_CROSS_ENTROPY;

const FileBytes kImages = IdxBytes({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255});
const FileBytes kLabels = IdxBytes({2}, {7, 0});

absl::StatusOr<Examples> Parse(const FileBytes& images, const FileBytes& labels,
                               v1::Loss loss = kSoftmax) {
  return ParseIdx(File("img", images), File("lab", labels), loss);
}

TEST_CASE("IDX images and labels are read as bytes") {
  absl::StatusOr<Examples> examples = Parse(kImages, kLabels);
  REQUIRE(examples.ok());
  CHECK(examples->shape == ImageShape{2, 3, 1});
  CHECK(examples->labels == std::vector<float>{7, 0});
  CHECK(std::get<FileBytes>(examples->values) == FileBytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255});
}

TEST_CASE("IDX files of 2 and 4 dimensions are features and images with channels") {
  CHECK(Parse(IdxBytes({2, 3}, {1, 2, 3, 4, 5, 6}), kLabels)->shape == ImageShape{1, 1, 3});
  CHECK(Parse(IdxBytes({2, 1, 2, 3}, FileBytes(12)), kLabels)->shape == ImageShape{1, 2, 3});
}

TEST_CASE("Each way in which an IDX file can be wrong names the file and the byte") {
  const auto bad = [](const FileBytes& images, const FileBytes& labels,
                      std::vector<std::string> parts) {
    RequireError(Parse(images, labels), StatusCode::kInvalidArgument, parts);
  };
  bad({}, kLabels, {"img: byte 0"});
  bad({'P', 'K', 3, 4}, kLabels, {"img: byte 0", "not an IDX file"});
  bad({0, 0, 13, 3, 0, 0, 0, 1}, kLabels, {"img: byte 2", "type 13"});
  bad(kLabels, kLabels, {"img: byte 3", "1 dimensions"});
  bad(kImages, kImages, {"lab: byte 3", "3 dimensions"});
  bad(IdxBytes({0, 2, 3}, {}), kLabels, {"img: byte 4", "is 0"});
  bad(IdxBytes({2, 0, 3}, {}), kLabels, {"img: byte 8", "is 0"});
  bad(IdxBytes({2, 2, 3}, FileBytes(13)), kLabels,
      {"img: byte 16", "ask for 12 bytes, but more follow"});
  bad(IdxBytes({2, 2, 3}, FileBytes(11)), kLabels,
      {"img: byte 16", "ask for 12 bytes, but 11 follow"});
  bad(kImages, IdxBytes({2}, {0, 1, 2}), {"lab: byte 8", "ask for 2 bytes, but more follow"});
  bad(kImages, IdxBytes({3}, {0, 1, 2}), {"lab: byte 4", "3 labels for the 2 images of img"});
  RequireError(Parse(kImages, kLabels, v1::LOSS_LOGISTIC), StatusCode::kInvalidArgument,
               {"lab: byte 8", "label 7", "logistic"});
}

TEST_CASE("IDX dimensions whose product overflows are an error, not an allocation") {
  const uint32_t huge = 0xffffffff;
  RequireError(Parse(IdxBytes({huge, huge, huge}, {1}), kLabels), StatusCode::kInvalidArgument,
               {"img: byte 8"});
  // 2^64 elements, whose product overflows to 0.
  RequireError(Parse(IdxBytes({1u << 31, 1u << 31, 4}, {}), kLabels), StatusCode::kInvalidArgument,
               {"img: byte"});
}

TEST_CASE("Every truncation of an IDX file is an error") {
  for (size_t size = 0; size < kImages.size(); ++size) {
    CHECK_FALSE(Parse(FileBytes(kImages.begin(), kImages.begin() + size), kLabels).ok());
  }
  for (size_t size = 0; size < kLabels.size(); ++size) {
    CHECK_FALSE(Parse(kImages, FileBytes(kLabels.begin(), kLabels.begin() + size)).ok());
  }
}

TEST_CASE("Every changed byte of an IDX header is an error, and of the rest a changed value") {
  for (size_t at = 0; at < kImages.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      FileBytes images = kImages;
      images[at] ^= static_cast<uint8_t>(change);
      absl::StatusOr<Examples> examples = Parse(images, kLabels);
      // The shape 2x3 may become another shape of six pixels, with each side within 1..6.
      const bool dimension = at == 11 || at == 15;
      if (!dimension) CHECK(examples.ok() == (at >= 16));
    }
  }
}

}  // namespace
}  // namespace leeway::idx
