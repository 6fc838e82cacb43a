#include "worker/data/memory_dataset.h"

#include <cmath>
#include <limits>

#include "tests/worker/data/data_test_util.h"

namespace leeway::memory_dataset {
namespace {

using absl::StatusCode;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

absl::StatusOr<std::unique_ptr<MemoryDataset>> Make(ImageShape shape, ExampleValues values,
                                                    const std::string& normalize = "") {
  const size_t size = std::visit([](const auto& v) { return v.size(); }, values) / shape.elements();
  return MemoryDataset::Create(Examples{shape, std::move(values), std::vector<float>(size, 1)}, 2,
                               FromText<v1::Normalize>(normalize));
}

std::vector<float> Example(const MemoryDataset& dataset, size_t i) {
  std::vector<float> out(dataset.shape().elements());
  dataset.CopyExample(i, out.data());
  return out;
}

void CheckNear(const std::vector<float>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - expected[i]) < 1e-6);
}

TEST_CASE("Bytes are held as bytes and come out as 0 to 1, both exactly") {
  const auto dataset = *Make({1, 2, 1}, FileBytes{9, 9, 0, 255});
  CHECK(dataset->bytes() == 4);
  CHECK(Example(*dataset, 1) == std::vector<float>{0, 1});
  CheckNear(Example(*dataset, 0), {9 / 255., 9 / 255.});
}

TEST_CASE("Mean and standard deviation are for all, a channel or an element") {
  const FileBytes bytes = {0, 51, 102, 153};  // 0, 0.2, 0.4, 0.6
  const auto one = *Make({1, 2, 2}, bytes, "mean: 0.2 std: 0.5");
  CheckNear(Example(*one, 0), {-0.4, 0, 0.4, 0.8});
  const auto channel = *Make({1, 2, 2}, bytes, "mean: [0.2, 0.4] std: [0.5, 0.1]");
  CheckNear(Example(*channel, 0), {-0.4, -2, 0.4, 2});
  const auto element = *Make({1, 2, 2}, bytes, "mean: [0, 0.1, 0.2, 0.3] std: 1");
  CheckNear(Example(*element, 0), {0, 0.1, 0.2, 0.3});
  const auto floats = *Make({1, 1, 2}, std::vector<float>{5, 7}, "mean: [4, 8] std: [2, 4]");
  CheckNear(Example(*floats, 0), {0.5, -0.25});
}

TEST_CASE("A missing value is 0 after normalisation, with or without a mean") {
  CHECK(Example(**Make({1, 1, 2}, std::vector<float>{kNan, 3}), 0) == std::vector<float>{0, 3});
  CHECK(Example(**Make({1, 1, 2}, std::vector<float>{kNan, 3}, "mean: 2 std: 2"), 0) ==
        std::vector<float>{0, 0.5});
  CHECK(Example(**Make({1, 1, 2}, std::vector<float>{1, kNan}, "mean: [2, 5] std: 2"), 0) ==
        std::vector<float>{-0.5, 0});
}

TEST_CASE("A normalisation that does not fit the data is an error") {
  const FileBytes bytes(12);
  RequireError(Make({2, 2, 3}, bytes, "mean: [1, 2] std: 1"), StatusCode::kInvalidArgument,
               {"data.normalize.mean", "2 numbers", "(3)", "(12)"});
  RequireError(Make({2, 2, 3}, bytes, "mean: 0 std: [1, 1, 1, 1]"), StatusCode::kInvalidArgument,
               {"data.normalize.std"});
  for (const char* bad : {"mean: 0 std: 0", "mean: 0 std: -1", "mean: 0 std: nan",
                          "mean: inf std: 1", "mean: 0 std: 1e-60", "mean: 1e300 std: 1"}) {
    INFO(bad);
    RequireError(Make({2, 2, 3}, bytes, bad), StatusCode::kInvalidArgument, {"data.normalize"});
  }
  RequireError(Make({1, 1, 2}, std::vector<float>{0, 0, 0, 1e30f}, "mean: 0 std: 1e-20"),
               StatusCode::kInvalidArgument, {"example 1, element 1"});
  RequireError(Make({1, 1, 2}, std::vector<float>{}), StatusCode::kInvalidArgument,
               {"no examples"});
}

TEST_CASE("A batch is a range of the examples") {
  const auto dataset = *Make({1, 1, 2}, std::vector<float>{0, 1, 2, 3, 4, 5});
  Batch batch;
  REQUIRE(dataset->CopyBatch(1, 2, batch).ok());
  CHECK(batch.size == 2);
  CHECK(batch.features == std::vector<float>{2, 3, 4, 5});
  CHECK(batch.labels.size() == 2);
  REQUIRE(dataset->CopyBatch(3, 0, batch).ok());
  CHECK(batch.features.empty());
}

TEST_CASE("Files that hold other shapes or kinds do not go together") {
  Examples a{{1, 1, 2}, std::vector<float>{1, 2}, {0}};
  CHECK(a.Append(Examples{{1, 1, 2}, std::vector<float>{3, 4}, {1}}, "b").ok());
  CHECK(a.size() == 2);
  CHECK(std::get<std::vector<float>>(a.values) == std::vector<float>{1, 2, 3, 4});
  const absl::Status shape = a.Append(Examples{{1, 2, 1}, std::vector<float>{3, 4}, {1}}, "b");
  CHECK(shape.code() == StatusCode::kInvalidArgument);
  CHECK(Contains(
      shape, "b: its examples are 1x2x1, but the examples of the earlier files are 2 features"));
  CHECK_FALSE(a.Append(Examples{{1, 1, 2}, FileBytes{3, 4}, {1}}, "b").ok());
}

}  // namespace
}  // namespace leeway::memory_dataset
