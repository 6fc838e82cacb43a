#include "worker/data/cifar10.h"

#include "tests/worker/data/data_test_util.h"

namespace leeway {
namespace {

using absl::StatusCode;
constexpr v1::Loss kSoftmax = v1::LOSS_SOFTMAX_CROSS_ENTROPY;
constexpr size_t kRecord = 3073;

// Two records whose byte says plane and pixel.
Bytes TwoRecords() {
  Bytes bytes;
  for (uint8_t label : {3, 9}) {
    bytes.push_back(label);
    for (size_t i = 0; i < 3072; ++i)
      bytes.push_back(static_cast<uint8_t>(i / 1024 * 64 + i % 1024 % 61));
  }
  return bytes;
}

TEST_CASE("CIFAR-10 records become images with the colours of a pixel side by side") {
  absl::StatusOr<Examples> examples = ParseCifar10(File("f", TwoRecords()), kSoftmax);
  REQUIRE(examples.ok());
  CHECK(examples->shape == ImageShape{32, 32, 3});
  CHECK(examples->labels == std::vector<float>{3, 9});
  const Bytes& values = std::get<Bytes>(examples->values);
  REQUIRE(values.size() == 2 * 3072);
  for (size_t pixel : {0, 1, 60, 61, 1023}) {
    for (size_t colour : {0, 1, 2}) {
      CHECK(values[3072 + pixel * 3 + colour] == colour * 64 + pixel % 61);
    }
  }
}

TEST_CASE("A CIFAR-10 file that ends within a record, or has a label beyond 9, is an error") {
  const Bytes bytes = TwoRecords();
  for (size_t size : {size_t{1}, size_t{2}, kRecord - 1, kRecord + 1, 2 * kRecord - 1}) {
    RequireError(ParseCifar10(File("f", Bytes(bytes.begin(), bytes.begin() + size)), kSoftmax),
                 StatusCode::kInvalidArgument, {"f: byte " + std::to_string(size), "3073"});
  }
  RequireError(ParseCifar10(File("f", {}), kSoftmax), StatusCode::kInvalidArgument, {"f: byte 0"});
  Bytes wrong = bytes;
  wrong[kRecord] = 10;
  RequireError(ParseCifar10(File("f", wrong), kSoftmax), StatusCode::kInvalidArgument,
               {"f: byte 3073", "label 10"});
  RequireError(ParseCifar10(File("f", bytes), v1::LOSS_LOGISTIC), StatusCode::kInvalidArgument,
               {"f: byte 0", "label 3", "logistic"});
}

}  // namespace
}  // namespace leeway
