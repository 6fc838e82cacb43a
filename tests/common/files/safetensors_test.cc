#include "common/files/safetensors.h"

#include <cstring>
#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::safetensors {
namespace {

void AddTensor(v1::ModelSchema& schema, const std::string& name, std::vector<uint64_t> shape,
               uint64_t offset) {
  v1::TensorSpec& tensor = *schema.add_tensors();
  tensor.set_name(name);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  tensor.set_offset(offset);
}

v1::ModelSchema TwoTensors() {
  v1::ModelSchema schema;
  AddTensor(schema, "dense_0.weight", {2, 3}, 0);
  AddTensor(schema, "dense_0.bias", {3}, 6);
  schema.set_trained(9);
  schema.set_total(9);
  return schema;
}

TEST_CASE("a safetensors file reads back by its specification") {
  TempFolder folder;
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6, -7, 8, 0.125f};
  REQUIRE(
      WriteSafetensors(folder / "m.safetensors", TwoTensors(), weights, {{"job", "\"q\""}}).ok());
  const std::string file = *ReadFile(folder / "m.safetensors", 10'000);

  uint64_t length = 0;
  REQUIRE(file.size() > 8);
  std::memcpy(&length, file.data(), 8);
  REQUIRE(length % 8 == 0);
  REQUIRE(file[8] == '{');
  REQUIRE(file.size() == 8 + length + weights.size() * 4);
  const auto header = nlohmann::json::parse(file.substr(8, length));
  REQUIRE(header["__metadata__"]["job"] == "\"q\"");
  REQUIRE(header.size() == 3);
  const auto values_of = [&](const std::string& name) {
    const auto& offsets = header[name]["data_offsets"];
    const size_t begin = offsets[0], end = offsets[1];
    std::vector<float> values((end - begin) / 4);
    std::memcpy(values.data(), file.data() + 8 + length + begin, end - begin);
    return values;
  };
  REQUIRE(header["dense_0.weight"]["dtype"] == "F32");
  REQUIRE(header["dense_0.weight"]["shape"] == std::vector<int>{2, 3});
  REQUIRE(header["dense_0.bias"]["shape"] == std::vector<int>{3});
  REQUIRE(values_of("dense_0.weight") == std::vector<float>{1, 2, 3, 4, 5, 6});
  REQUIRE(values_of("dense_0.bias") == std::vector<float>{-7, 8, 0.125f});
}

TEST_CASE("a scalar tensor and a model without metadata are written") {
  TempFolder folder;
  v1::ModelSchema schema;
  AddTensor(schema, "scale", {}, 0);
  schema.set_total(1);
  REQUIRE(WriteSafetensors(folder / "m", schema, std::vector<float>{3}, {}).ok());
  const std::string file = *ReadFile(folder / "m", 1000);
  REQUIRE(file.find("__metadata__") == std::string::npos);
  REQUIRE(file.find("\"shape\":[]") != std::string::npos);
}

TEST_CASE("a schema that does not fit its weights is refused and nothing is written") {
  TempFolder folder;
  const std::vector<float> nine(9), eight(8);
  v1::ModelSchema gap = TwoTensors(), overlap = TwoTensors(), twice = TwoTensors(),
                  reserved = TwoTensors(), huge = TwoTensors(), not_text = TwoTensors(),
                  rest = TwoTensors();
  gap.mutable_tensors(1)->set_offset(7);
  overlap.mutable_tensors(1)->set_offset(5);
  twice.mutable_tensors(1)->set_name("dense_0.weight");
  reserved.mutable_tensors(1)->set_name("__metadata__");
  huge.mutable_tensors(0)->set_shape(0, ~uint64_t{0});
  not_text.mutable_tensors(1)->set_name("\xff\xfe");
  rest.mutable_tensors()->RemoveLast();
  for (const v1::ModelSchema& schema : {gap, overlap, twice, reserved, huge, not_text, rest}) {
    const absl::Status status = WriteSafetensors(folder / "m", schema, nine, {});
    REQUIRE(absl::IsInvalidArgument(status));
    REQUIRE(status.message().find(folder / "m") != absl::string_view::npos);
  }
  REQUIRE(absl::IsInvalidArgument(WriteSafetensors(folder / "m", TwoTensors(), eight, {})));
  REQUIRE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace leeway::safetensors
