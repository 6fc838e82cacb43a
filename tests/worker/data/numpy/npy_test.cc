// NumPy arrays, as numpy.save and numpy.savez write them.
#include <cmath>
#include <cstring>

#include <zip.h>

#include "tests/worker/data/data_test_util.h"
#include "worker/data/numpy/npy_array.h"
#include "worker/data/numpy/npy_files.h"
#include "worker/data/numpy/npy_header.h"

namespace leeway::npy {
namespace {

using absl::StatusCode;
using Floats = std::vector<float>;
constexpr v1::Loss kSoftmax = v1::LOSS_SOFTMAX_CROSS_ENTROPY;

// Makes a file with this dictionary and these elements.
FileBytes NpyOf(const std::string& dictionary, const FileBytes& elements, uint8_t version = 1) {
  FileBytes out = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  const size_t digits = version == 1 ? 2 : 4;
  std::string header = dictionary;
  while ((8 + digits + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  for (size_t i = 0; i < digits; ++i) out.push_back(static_cast<uint8_t>(header.size() >> 8 * i));
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), elements.begin(), elements.end());
  return out;
}

FileBytes Npy(const std::string& type, const std::string& shape, const FileBytes& elements,
              uint8_t version = 1) {
  return NpyOf("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }",
               elements, version);
}

// The elements' bytes, little-endian or `swapped`.
template <typename T>
FileBytes Elements(const std::vector<T>& values, bool big_endian = false) {
  FileBytes out;
  for (const T value : values) {
    uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    if (big_endian) std::reverse(bytes, bytes + sizeof(T));
    out.insert(out.end(), bytes, bytes + sizeof(T));
  }
  return out;
}

FileBytes LabelsOf(size_t count) {
  return Npy("|u1", "(" + std::to_string(count) + ",)", FileBytes(count));
}

absl::StatusOr<Examples> Parse(const FileBytes& features, const FileBytes& labels,
                               v1::Loss loss = kSoftmax) {
  return ParseNpy(File("x.npy", features), File("y.npy", labels), loss);
}

Examples Parsed(const FileBytes& features, const FileBytes& labels, v1::Loss loss = kSoftmax) {
  auto examples = Parse(features, labels, loss);
  INFO(examples.status().ToString());
  REQUIRE(examples.ok());
  return *std::move(examples);
}

Floats FeaturesOf(const std::string& type, const FileBytes& elements, const std::string& shape) {
  return std::get<Floats>(Parsed(Npy(type, shape, elements), LabelsOf(1)).values);
}

TEST_CASE("Numbers of every type and byte order become floats") {
  const std::vector<int16_t> shorts = {-300, 7};
  CHECK(FeaturesOf("<i2", Elements(shorts), "(1, 2)") == Floats{-300, 7});
  CHECK(FeaturesOf(">i2", Elements(shorts, true), "(1, 2)") == Floats{-300, 7});
  CHECK(FeaturesOf("|i1", Elements<int8_t>({-128, 127}), "(1, 2)") == Floats{-128, 127});
  CHECK(FeaturesOf("<u2", Elements<uint16_t>({65535, 0}), "(1, 2)") == Floats{65535, 0});
  CHECK(FeaturesOf("<i4", Elements<int32_t>({-5, 1 << 20}), "(1, 2)") == Floats{-5, 1 << 20});
  CHECK(FeaturesOf(">u4", Elements<uint32_t>({3000000000u, 1}, true), "(1, 2)") == Floats{3e9, 1});
  CHECK(FeaturesOf("<i8", Elements<int64_t>({-1, 9}), "(1, 2)") == Floats{-1, 9});
  CHECK(FeaturesOf("<u8", Elements<uint64_t>({1ull << 63, 9}), "(1, 2)") == Floats{0x1p63f, 9});
  CHECK(FeaturesOf("|b1", {0, 1}, "(1, 2)") == Floats{0, 1});
  CHECK(FeaturesOf("<f4", Elements<float>({0.25f, -3}), "(1, 2)") == Floats{0.25f, -3});
  CHECK(FeaturesOf(">f8", Elements<double>({0.25, -3e-3}, true), "(1, 2)") ==
        Floats{0.25f, -3e-3f});
  // 1.5, -2, the smallest and the largest value.
  CHECK(FeaturesOf("<f2", Elements<uint16_t>({0x3e00, 0xc000, 1, 0x7bff}), "(1, 4)") ==
        Floats{1.5f, -2, 0x1p-24f, 65504});
}

TEST_CASE("Unsigned bytes stay bytes, NaN is a missing value, infinity is an error") {
  const Examples bytes = Parsed(Npy("|u1", "(2, 1, 3)", {1, 2, 3, 253, 254, 255}), LabelsOf(2));
  CHECK(std::get<FileBytes>(bytes.values) == FileBytes{1, 2, 3, 253, 254, 255});
  CHECK(bytes.shape == ImageShape{1, 3, 1});
  CHECK(std::isnan(FeaturesOf("<f4", Elements<float>({NAN, 1}), "(1, 2)")[0]));
  CHECK(std::isnan(FeaturesOf("<f2", Elements<uint16_t>({0x7e00, 0}), "(1, 2)")[0]));
  for (const double bad : {HUGE_VAL, -HUGE_VAL, 1e300}) {
    RequireError(Parse(Npy("<f8", "(1, 2)", Elements<double>({0, bad})), LabelsOf(1)),
                 StatusCode::kInvalidArgument, {"x.npy: byte 136", "not finite as a float"});
  }
  RequireError(Parse(Npy("<f2", "(1, 1)", Elements<uint16_t>({0xfc00})), LabelsOf(1)),
               StatusCode::kInvalidArgument, {"-inf"});
}

TEST_CASE("Shapes are features, images without and with channels, versions 1 to 3 are read") {
  const auto shape = [](const std::string& text, uint8_t version = 1) {
    return Parsed(Npy("<f4", text, Elements(Floats(24)), version), LabelsOf(2)).shape;
  };
  CHECK(shape("(2, 12)") == ImageShape{1, 1, 12});
  CHECK(shape("(2, 3, 4)", 2) == ImageShape{3, 4, 1});
  CHECK(shape("(2, 2, 2, 3)", 3) == ImageShape{2, 2, 3});
  CHECK(shape("(2L, 12L)") == ImageShape{1, 1, 12});
  const auto refused = [](const std::string& text, const std::vector<std::string>& parts) {
    INFO(text);
    RequireError(Parse(Npy("<f4", text, Elements(Floats(24))), LabelsOf(2)),
                 StatusCode::kInvalidArgument, parts);
  };
  refused("(24,)", {"1 dimensions", "[examples, features]"});
  refused("()", {"0 dimensions"});
  refused("(2, 1, 1, 1, 12)", {"shape"});
  refused("(24)", {"shape"});
  refused("(2, -12)", {"shape"});
  refused("(2, 99999999999999999999)", {"shape"});
  refused("(0, 12)", {"no examples"});
  refused("(2, 0)", {"a dimension is 0"});
  refused("(2, 11)", {"88 bytes, but more follow"});
  refused("(2, 13)", {"104 bytes, but 96 follow"});
  RequireError(Parse(Npy("<f4", "(18446744073709551615, 12)", {}), LabelsOf(2)),
               StatusCode::kResourceExhausted, {"x.npy"});
  RequireError(Parse(Npy("<f8", "(4000000000, 1000)", {}), LabelsOf(2)),
               StatusCode::kResourceExhausted, {"x.npy"});
}

TEST_CASE("Labels are numbers of any type that the loss takes") {
  const FileBytes features = Npy("<f4", "(3, 1)", Elements(Floats(3)));
  CHECK(Parsed(features, Npy("<i8", "(3,)", Elements<int64_t>({2, 0, 5}))).labels ==
        Floats{2, 0, 5});
  CHECK(Parsed(features, Npy("<f8", "(3,)", Elements<double>({0.5, -1, 7})), v1::LOSS_SQUARED)
            .labels == Floats{0.5, -1, 7});
  CHECK(Parsed(features, Npy("|b1", "(3,)", {1, 0, 1}), v1::LOSS_LOGISTIC).labels ==
        Floats{1, 0, 1});
  RequireError(Parse(features, Npy("<f4", "(3,)", Elements<float>({0, 1.5, 1}))),
               StatusCode::kInvalidArgument, {"y.npy: byte 132: label 1.5"});
  RequireError(Parse(features, Npy("<i2", "(3,)", Elements<int16_t>({0, 1, -1}))),
               StatusCode::kInvalidArgument, {"y.npy: byte 132: label -1"});
  RequireError(Parse(features, LabelsOf(4)), StatusCode::kInvalidArgument,
               {"y.npy", "4 labels for the 3 examples of x.npy"});
  RequireError(Parse(features, Npy("|u1", "(3, 1)", {1, 2, 3})), StatusCode::kInvalidArgument,
               {"y.npy", "labels must have one"});
}

TEST_CASE("Objects, fields, Fortran order and other types are refused with what to do") {
  const auto refused = [](const std::string& dictionary, const std::vector<std::string>& parts) {
    INFO(dictionary);
    RequireError(Parse(NpyOf(dictionary, FileBytes(16)), LabelsOf(1)), StatusCode::kInvalidArgument,
                 parts);
  };
  const std::string rest = "'fortran_order': False, 'shape': (1, 2)}";
  refused("{'descr': '|O', " + rest, {"x.npy: byte 10", "pickled", "allow_pickle=False"});
  refused("{'descr': [('a', '<f4'), ('b', '<f4')], " + rest, {"several fields"});
  for (const char* type : {"<c8", "<U4", "|S3", "<M8[s]", "<f16", "<i3", "f4", "<f", "", "<4"}) {
    refused(std::string("{'descr': '") + type + "', " + rest, {"astype"});
  }
  refused("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 2)}", {"ascontiguousarray"});
  refused("{'descr': '<f8', 'fortran_order': False}", {"dictionary"});
  refused("{'descr': '<f8', 'shape': (1, 2), 'shape': (1, 2)}", {"dictionary"});
  refused("{'descr': '<f8', " + rest + " + 1", {"dictionary"});
  refused("{'descr': '<f8', 'more': 1, " + rest, {"'more'"});
  CHECK(ParseNpyDictionary("{\"shape\": (1,2), 'fortran_order':False,'descr':'>f4',}").ok());
}

TEST_CASE("A file that is cut off anywhere, or is no .npy, is an error with the byte") {
  const FileBytes whole = Npy("<f4", "(2, 3)", Elements(Floats(6)));
  for (size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    const FileBytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    RequireError(Parse(part, LabelsOf(2)), StatusCode::kInvalidArgument, {"x.npy: byte "});
  }
  FileBytes wrong = whole;
  wrong[6] = 4;
  RequireError(Parse(wrong, LabelsOf(2)), StatusCode::kInvalidArgument, {"version 4.0"});
  wrong = Npy("<f4", "(2, 3)", Elements(Floats(6)), 2);
  wrong[11] = 0x70;
  RequireError(Parse(wrong, LabelsOf(2)), StatusCode::kInvalidArgument, {"byte 8", "a header of"});
}

// Writes a zip archive of these members.
void WriteZip(const DataFolder& folder, const std::string& name,
              const std::vector<std::pair<std::string, FileBytes>>& members, bool deflated) {
  const std::string path = folder.path() + "/" + name;
  zip_t* const archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  REQUIRE(archive != nullptr);
  for (const auto& [member, bytes] : members) {
    zip_source_t* const source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    const zip_int64_t index = zip_file_add(archive, member.c_str(), source, 0);
    REQUIRE(index >= 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                             deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  REQUIRE(zip_close(archive) == 0);
}

absl::StatusOr<Examples> Read(const DataFolder& folder, const std::string& source) {
  return ReadNumpy(FromText<v1::Numpy>(source), folder.path(), kSoftmax);
}

TEST_CASE("Arrays of an .npz, stored or deflated, are those of the .npy") {
  DataFolder folder;
  Floats values(3000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17);
  const FileBytes x = Npy("<f4", "(1000, 3)", Elements(values)), y = LabelsOf(1000);
  folder.Write("x.npy", x);
  folder.Write("x.npy.gz", Gzip(x));
  folder.Write("y.npy", y);
  const Examples plain = *Read(folder, "features: 'x.npy' labels: 'y.npy'");
  CHECK(std::get<Floats>(plain.values) == values);
  CHECK(std::get<Floats>(Read(folder, "features: 'x.npy.gz' labels: 'y.npy'")->values) == values);
  for (const bool deflated : {false, true}) {
    WriteZip(folder, "d.npz", {{"x.npy", x}, {"y.npy", y}}, deflated);
    WriteZip(folder, "one.npz", {{"y.npy", y}}, deflated);
    const auto both = Read(folder,
                           "features: 'd.npz' features_array: 'x' labels: 'd.npz' "
                           "labels_array: 'y'");
    INFO(both.status().ToString());
    REQUIRE(both.ok());
    CHECK(std::get<Floats>(both->values) == values);
    CHECK(Read(folder, "features: 'x.npy' labels: 'one.npz'").ok());
  }
}

TEST_CASE("Archives that are damaged, or lack the array, are errors with key and file") {
  DataFolder folder;
  const FileBytes x = Npy("<f4", "(2, 600)", Elements(Floats(1200))), y = LabelsOf(2);
  folder.Write("y.npy", y);
  WriteZip(folder, "d.npz", {{"x.npy", x}, {"z.npy", y}}, true);
  RequireError(Read(folder, "features: 'd.npz' labels: 'y.npy'"), StatusCode::kInvalidArgument,
               {"features_array", "has 2 arrays; name one of them: x, z"});
  RequireError(Read(folder, "features: 'd.npz' features_array: 'w' labels: 'y.npy'"),
               StatusCode::kNotFound, {"features_array", "no array w.npy", "x.npy, z.npy"});
  RequireError(Read(folder, "features: 'y.npy' features_array: 'w' labels: 'y.npy'"),
               StatusCode::kInvalidArgument, {"features_array", "is not an .npz"});
  RequireError(Read(folder, "features: 'absent.npy' labels: 'y.npy'"), StatusCode::kNotFound,
               {"features", "absent.npy: no such file"});
  WriteZip(folder, "d.npz", {{"x.npy", x}}, false);
  std::ifstream stream(folder.path() + "/d.npz", std::ios::binary);
  const FileBytes whole((std::istreambuf_iterator<char>(stream)), {});
  for (size_t size = 8; size < whole.size(); size += 101) {
    folder.Write("cut.npz",
                 FileBytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    RequireError(Read(folder, "features: 'cut.npz' labels: 'y.npy'"), StatusCode::kInvalidArgument,
                 {"cut.npz"});
  }
  FileBytes wrong = whole;
  wrong[1000] ^= 1;
  folder.Write("wrong.npz", wrong);
  RequireError(Read(folder, "features: 'wrong.npz' labels: 'y.npy'"), StatusCode::kDataLoss,
               {"wrong.npz(x.npy)", "damaged"});
}

}  // namespace
}  // namespace leeway::npy
