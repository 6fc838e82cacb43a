#include "common/files/safetensors_reader.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <unistd.h>

#include "common/files/files.h"
#include "common/files/safetensors.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::safetensors_reader {
namespace {

// Makes a file with this header before `values`.
std::string FileOf(const std::string& header, const std::string& values) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + values;
}

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Writes this text as a file and opens it.
absl::StatusOr<SafetensorsReader> Open(const TempFolder& folder, const std::string& file) {
  REQUIRE(WriteFileAtomically(folder / "m.safetensors", file).ok());
  return SafetensorsReader::Open(folder / "m.safetensors");
}

std::vector<float> Values(const SafetensorsReader& file, const std::string& name) {
  const StoredTensor* tensor = file.Find(name);
  REQUIRE(tensor != nullptr);
  std::vector<float> values(tensor->elements());
  const absl::Status status = file.Read(*tensor, values);
  INFO(status);
  REQUIRE(status.ok());
  return values;
}

// The text of a file with two tensors of 6 + 2 floats, which tests change.
std::string Good() {
  return "{\"__metadata__\":{\"format\":\"pt\"}," + Entry("a", "F32", "[2,3]", "[0,24]") + "," +
         Entry("b", "F32", "[2]", "[24,32]") + "}";
}
const std::vector<float> kValues = {1, 2, 3, 4, 5, 6, 7, 8};

TEST_CASE("what was written is read") {
  TempFolder folder;
  v1::ModelSchema schema;
  v1::TensorSpec& tensor = *schema.add_tensors();
  tensor.set_name("dense_0/weight");
  tensor.add_shape(4);
  tensor.add_shape(2);
  schema.set_total(8);
  REQUIRE(WriteSafetensors(folder / "m", schema, kValues, {{"a", "b"}}).ok());
  const auto file = SafetensorsReader::Open(folder / "m");
  REQUIRE(file.ok());
  REQUIRE(file->tensors().size() == 1);
  CHECK(file->tensors()[0].shape == std::vector<uint64_t>{4, 2});
  CHECK(Values(*file, "dense_0/weight") == kValues);
  CHECK(file->Find("dense_0") == nullptr);
}

TEST_CASE("tensors come in the order of their data, whatever the header's") {
  TempFolder folder;
  const auto file = Open(folder, FileOf("{" + Entry("z", "F32", "[]", "[4,8]") + "," +
                                            Entry("none", "F32", "[0,7]", "[4,4]") + "," +
                                            Entry("y", "F32", "[1]", "[0,4]") + "}",
                                        Bytes<float>({3, 4})));
  INFO(file.status());
  REQUIRE(file.ok());
  CHECK(file->tensors()[0].name == "y");
  CHECK(file->tensors()[1].name == "none");
  CHECK(Values(*file, "z") == std::vector<float>{4});
  CHECK(Values(*file, "none").empty());
}

TEST_CASE("half, bfloat16 and double values become float32") {
  TempFolder folder;
  const std::string header = "{" + Entry("h", "F16", "[3]", "[0,6]") + "," +
                             Entry("b", "BF16", "[2]", "[6,10]") + "," +
                             Entry("d", "F64", "[2]", "[10,26]") + "}";
  const std::string values = Bytes<uint16_t>({0x3c00, 0xc000, 0x0001}) +
                             Bytes<uint16_t>({0x3f80, 0xc040}) + Bytes<double>({0.1, -1e-300});
  const auto file = Open(folder, FileOf(header, values));
  REQUIRE(file.ok());
  CHECK(Values(*file, "h") == std::vector<float>{1, -2, 0x1p-24f});
  CHECK(Values(*file, "b") == std::vector<float>{1, -3});
  CHECK(Values(*file, "d") == std::vector<float>{0.1f, -0.0f});
}

TEST_CASE(
    "values that are no finite float32, and dtypes that are no weights, are refused by name") {
  TempFolder folder;
  const float inf = std::numeric_limits<float>::infinity();
  struct Bad {
    std::string dtype;
    std::string values;
    std::string told;
  };
  const std::vector<Bad> bads = {
      {"F32", Bytes<float>({1, inf}), "has a value at element 1"},
      {"F32", Bytes<float>({std::numeric_limits<float>::quiet_NaN(), 0}),
       "has a value at element 0"},
      {"F64", Bytes<double>({0, 1e39}), "has a value at element 1"},
      {"F64", Bytes<double>({0, -1e39}), "has a value at element 1"},
      {"F16", Bytes<uint16_t>({0, 0x7c00}), "has a value at element 1"},
      {"BF16", Bytes<uint16_t>({0x7fc0, 0}), "has a value at element 0"},
      {"I64", Bytes<int64_t>({1, 2}), "has the dtype I64, but weights are read from F32"},
      {"BOOL", std::string(2, '\1'), "has the dtype BOOL"}};
  for (const Bad& bad : bads) {
    CAPTURE(bad.dtype, bad.told);
    const std::string offsets = "[0," + std::to_string(bad.values.size()) + "]";
    const auto file =
        Open(folder, FileOf("{" + Entry("w", bad.dtype, "[2]", offsets) + "}", bad.values));
    REQUIRE(file.ok());
    std::vector<float> values(2);
    const absl::Status status = file->Read(file->tensors()[0], values);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("tensor 'w' " + bad.told));
    CHECK_THAT(std::string(status.message()), Catch::Contains(folder / "m.safetensors"));
  }
}

TEST_CASE("a header that does not fit its file is refused, naming file and tensor") {
  TempFolder folder;
  const std::string values = Bytes(kValues);
  struct Bad {
    std::string header;
    std::string told;
  };
  const std::string b = Entry("b", "F32", "[2]", "[24,32]");
  const auto with = [&](const std::string& a) { return "{" + a + "," + b + "}"; };
  const std::vector<Bad> bads = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {"[1]", "not a JSON object"},
      {"7", "not a JSON object"},
      {"{\"a\":\"\xff\"}", "not JSON"},
      {Good() + "x", "not JSON"},
      {with("\"a\":[1]"), "tensor 'a': is not a JSON object"},
      {with("\"a\":{\"shape\":[2,3],\"data_offsets\":[0,24]}"), "tensor 'a': has no 'dtype'"},
      {with("\"a\":{\"dtype\":7,\"shape\":[2,3],\"data_offsets\":[0,24]}"),
       "tensor 'a': has no 'dtype'"},
      {with(Entry("a", "F31", "[2,3]", "[0,24]")), "tensor 'a': has the dtype 'F31'"},
      {with("\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,24]}"), "has no list 'shape'"},
      {with("\"a\":{\"dtype\":\"F32\",\"shape\":[2,3]}"), "has no list 'data_offsets'"},
      {with(Entry("a", "F32", "[2,-3]", "[0,24]")),
       "in 'shape' that is not a whole, non-negative number"},
      {with(Entry("a", "F32", "[2,3.0]", "[0,24]")),
       "in 'shape' that is not a whole, non-negative number"},
      {with(Entry("a", "F32", "[2,18446744073709551616]", "[0,24]")),
       "not a whole, non-negative number"},
      {with(Entry("a", "F32", "[4294967296,4294967296,4]", "[0,0]")), "do not match F32"},
      {with(Entry("a", "F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6]", "[0,24]")), "17 numbers"},
      {with(Entry("a", "F32", "[2,3]", "[0]")), "has the data_offsets [0]"},
      {with(Entry("a", "F32", "[2,3]", "[0,24,24]")), "3 numbers in 'data_offsets'"},
      {with(Entry("a", "F32", "[2,3]", "[24,0]")), "has the data_offsets [24, 0]"},
      {with(Entry("a", "F32", "[2,3]", "[0,20]")), "20 bytes, which do not match F32 [2, 3]"},
      {with(Entry("a", "F64", "[2,3]", "[0,24]")), "24 bytes, which do not match F64 [2, 3]"},
      {with(Entry("a", "F32", "[3]", "[24,36]")), "has the data_offsets [24, 36], but the file"},
      {with(Entry("a", "F32", "[5]", "[0,20]")), "4 bytes before tensor 'b' belong to no tensor"},
      {with(Entry("a", "F32", "[7]", "[0,28]")), "tensor 'a' and tensor 'b' overlap"},
      {with(Entry("a", "F32", "[8]", "[0,32]")), "tensor 'a' and tensor 'b' overlap"},
      {"{" + Entry("a", "F32", "[2,3]", "[0,24]") + "}", "the last 8 bytes belong to no tensor"},
      {with(Entry("b", "F32", "[2,3]", "[0,24]")), "has the name 'b' twice"},
      {with("\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"),
       "has the name 'dtype' twice"},
      {with(Entry("a", "F32", "[[2],3]", "[0,24]")), "nested deeper"},
      {with("\"a\":{\"x\":{\"y\":{\"z\":{\"z\":{\"z\":1}}}}}"), "nested deeper"},
  };
  REQUIRE(Open(folder, FileOf(Good(), values)).ok());
  for (const Bad& bad : bads) {
    CAPTURE(bad.header);
    const auto file = Open(folder, FileOf(bad.header, values));
    CHECK(absl::IsDataLoss(file.status()));
    CHECK_THAT(std::string(file.status().message()), Catch::Contains(bad.told));
    CHECK_THAT(std::string(file.status().message()), Catch::Contains(folder / "m.safetensors"));
  }
}

TEST_CASE("a file that is cut short anywhere is refused") {
  TempFolder folder;
  const std::string whole = FileOf(Good(), Bytes(kValues));
  REQUIRE(Open(folder, whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(absl::IsDataLoss(Open(folder, whole.substr(0, size)).status()));
  }
  CHECK(absl::IsDataLoss(Open(folder, whole + "x").status()));
}

TEST_CASE("a header that is said to be longer than any file is not waited or allocated for") {
  TempFolder folder;
  for (const uint64_t length : {SafetensorsReader::kHeaderBytesMax + 1, uint64_t{1} << 62,
                                std::numeric_limits<uint64_t>::max()}) {
    std::string file = FileOf(Good(), Bytes(kValues));
    std::memcpy(file.data(), &length, sizeof(length));
    const auto opened = Open(folder, file);
    CHECK(absl::IsDataLoss(opened.status()));
    CHECK_THAT(std::string(opened.status().message()), Catch::Contains("truncated"));
  }
}

TEST_CASE("a header of a million brackets is refused") {
  TempFolder folder;
  const std::string deep(1'000'000, '[');
  CHECK(absl::IsDataLoss(Open(folder, FileOf(deep, "")).status()));
  CHECK(absl::IsDataLoss(Open(folder, FileOf("{\"a\":" + deep, "")).status()));
}

TEST_CASE("no file is NOT_FOUND, and a file that became shorter DATA_LOSS") {
  TempFolder folder;
  CHECK(absl::IsNotFound(SafetensorsReader::Open(folder / "none").status()));
  const auto file = Open(folder, FileOf(Good(), Bytes(kValues)));
  REQUIRE(file.ok());
  REQUIRE(truncate((folder / "m.safetensors").c_str(), 100) == 0);
  std::vector<float> values(2);
  CHECK(absl::IsDataLoss(file->Read(*file->Find("b"), values)));
}

}  // namespace
}  // namespace leeway::safetensors_reader
