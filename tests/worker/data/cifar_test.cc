#include "worker/data/cifar.h"

#include "tests/worker/data/data_test_util.h"

namespace leeway::cifar {
namespace {

using absl::StatusCode;
constexpr v1::Loss kSoftmax = v1::LOSS_SOFTMAX_CROSS_ENTROPY;
constexpr size_t kRecord = 3073;

// Two records in which each byte names its plane and pixel.
FileBytes TwoRecords() {
  FileBytes bytes;
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
  const FileBytes& values = std::get<FileBytes>(examples->values);
  REQUIRE(values.size() == 2 * 3072);
  for (size_t pixel : {0, 1, 60, 61, 1023}) {
    for (size_t colour : {0, 1, 2}) {
      CHECK(values[3072 + pixel * 3 + colour] == colour * 64 + pixel % 61);
    }
  }
}

TEST_CASE("A CIFAR-10 file that ends within a record, or has a label beyond 9, is an error") {
  const FileBytes bytes = TwoRecords();
  for (size_t size : {size_t{1}, size_t{2}, kRecord - 1, kRecord + 1, 2 * kRecord - 1}) {
    RequireError(ParseCifar10(File("f", FileBytes(bytes.begin(), bytes.begin() + size)), kSoftmax),
                 StatusCode::kInvalidArgument, {"f: byte " + std::to_string(size), "3073"});
  }
  RequireError(ParseCifar10(File("f", {}), kSoftmax), StatusCode::kInvalidArgument, {"f: byte 0"});
  FileBytes wrong = bytes;
  wrong[kRecord] = 10;
  RequireError(ParseCifar10(File("f", wrong), kSoftmax), StatusCode::kInvalidArgument,
               {"f: byte 3073", "label 10"});
  RequireError(ParseCifar10(File("f", bytes), v1::LOSS_LOGISTIC), StatusCode::kInvalidArgument,
               {"f: byte 0", "label 3", "logistic"});
}

// Two records of CIFAR-100 in which each byte names its plane and pixel.
FileBytes TwoRecordsOf100() {
  FileBytes bytes;
  for (const FileBytes& labels : {FileBytes{4, 30}, FileBytes{19, 99}}) {
    bytes.insert(bytes.end(), labels.begin(), labels.end());
    for (size_t i = 0; i < 3072; ++i) {
      bytes.push_back(static_cast<uint8_t>(i / 1024 * 64 + i % 1024 % 61));
    }
  }
  return bytes;
}

TEST_CASE("CIFAR-100 records have a coarse and a fine label before the image") {
  const auto read = [](v1::Cifar100Labels labels) {
    auto examples = ParseCifar100(File("f", TwoRecordsOf100()), labels, kSoftmax);
    INFO(examples.status().ToString());
    REQUIRE(examples.ok());
    return *std::move(examples);
  };
  const Examples fine = read(v1::CIFAR100_LABELS_FINE), coarse = read(v1::CIFAR100_LABELS_COARSE);
  CHECK(fine.labels == std::vector<float>{30, 99});
  CHECK(coarse.labels == std::vector<float>{4, 19});
  CHECK(fine.shape == ImageShape{32, 32, 3});
  CHECK(fine.values == coarse.values);
  CHECK(fine.values == ParseCifar10(File("f", TwoRecords()), kSoftmax)->values);
}

TEST_CASE("A CIFAR-100 file that ends within a record, or has a label too large, is an error") {
  const auto parse = [](const FileBytes& bytes) {
    return ParseCifar100(File("f", bytes), v1::CIFAR100_LABELS_FINE, kSoftmax);
  };
  const FileBytes bytes = TwoRecordsOf100();
  for (const size_t size : {size_t{1}, size_t{2}, kRecord, kRecord + 2, 2 * kRecord + 1}) {
    RequireError(parse(FileBytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))),
                 StatusCode::kInvalidArgument, {"f: byte " + std::to_string(size), "3074"});
  }
  FileBytes wrong = bytes;
  wrong[kRecord + 1] = 20;
  RequireError(parse(wrong), StatusCode::kInvalidArgument, {"byte 3074: label 20", "0 to 19"});
  wrong = bytes;
  wrong[1] = 100;
  RequireError(parse(wrong), StatusCode::kInvalidArgument, {"byte 1: label 100", "0 to 99"});
}

}  // namespace
}  // namespace leeway::cifar
