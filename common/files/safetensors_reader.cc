#include "common/files/safetensors_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/codec/bf16.h"
#include "common/codec/fp16.h"
#include "common/printable.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace leeway {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr char kMetadataEntry[] = "__metadata__";
// The depth of the header's JSON: the header, the object of a tensor, and the lists in that object.
constexpr int kDepthMax = 3;
// The number of elements that are read at a time.
constexpr size_t kPiece = 1 << 16;

struct DtypeSize {
  absl::string_view name;
  uint64_t bytes;
};
constexpr DtypeSize kDtypes[] = {{"F64", 8},  {"F32", 4},     {"F16", 2},    {"BF16", 2},
                                 {"I64", 8},  {"I32", 4},     {"I16", 2},    {"I8", 1},
                                 {"U64", 8},  {"U32", 4},     {"U16", 2},    {"U8", 1},
                                 {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

std::string Quoted(absl::string_view name) {
  return absl::StrCat("tensor '", Printable(name), "'");
}

// Returns the number of bytes of an element, or 0 if the format does not have the dtype.
uint64_t DtypeBytes(absl::string_view dtype) {
  for (const DtypeSize& known : kDtypes) {
    if (known.name == dtype) return known.bytes;
  }
  return 0;
}

// Parses the header's JSON. Returns DATA_LOSS if a name occurs twice, because the second entry
// would hide the first one, or if the JSON is nested more deeply than the format allows.
absl::StatusOr<Json> ParseHeader(const std::string& text) {
  std::vector<std::set<std::string>> names(kDepthMax + 1);
  std::string wrong;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    // Drop this value, because it is inside a value that was already refused.
    if (depth > kDepthMax) return false;
    const bool begins =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (begins && depth >= kDepthMax) {
      if (wrong.empty()) wrong = "is nested deeper than the format allows";
      return false;
    }
    if (begins) names[static_cast<size_t>(depth) + 1].clear();
    if (event != Json::parse_event_t::key) return true;
    const auto at = static_cast<size_t>(depth);
    const std::string& name = parsed.get_ref<const std::string&>();
    if (!names[at].insert(name).second && wrong.empty()) {
      wrong = absl::StrCat("has the name '", Printable(name), "' twice");
    }
    return true;
  };
  Json header;
  try {
    header = Json::parse(text, check);
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("the header is not JSON: ", Printable(error.what())));
  }
  if (!wrong.empty()) return absl::DataLossError(absl::StrCat("the header ", wrong));
  if (!header.is_object()) return absl::DataLossError("the header is not a JSON object");
  return header;
}

// Returns the list at `key`. The list must have at most `max` numbers, all whole and at least 0.
absl::StatusOr<std::vector<uint64_t>> NumbersOf(const Json& entry, const char* key, size_t max) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) {
    return absl::DataLossError(absl::StrCat("has no list '", key, "'"));
  }
  if (found->size() > max) {
    return absl::DataLossError(
        absl::StrCat("has ", found->size(), " numbers in '", key, "', more than ", max));
  }
  std::vector<uint64_t> numbers;
  for (const Json& number : *found) {
    if (!number.is_number_unsigned()) {
      return absl::DataLossError(
          absl::StrCat("has an entry in '", key, "' that is not a whole, non-negative number"));
    }
    numbers.push_back(number.get<uint64_t>());
  }
  return numbers;
}

// Sets `bytes` to the number of bytes of a tensor with this shape. Returns false if this number is
// 2^64 or more.
bool BytesOfShape(std::span<const uint64_t> shape, uint64_t element_bytes, uint64_t& bytes) {
  bytes = element_bytes;
  for (const uint64_t side : shape) {
    if (__builtin_mul_overflow(bytes, side, &bytes)) return false;
  }
  return true;
}

// Reads the entry of a tensor in the header. The file has `size` bytes, and the values begin at the
// position `data`.
absl::StatusOr<StoredTensor> TensorOf(const std::string& name, const Json& entry, uint64_t data,
                                      uint64_t size) {
  if (!entry.is_object()) return absl::DataLossError("is not a JSON object");
  StoredTensor tensor;
  tensor.name = name;
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string()) return absl::DataLossError("has no 'dtype'");
  tensor.dtype = dtype->get<std::string>();
  const uint64_t element_bytes = DtypeBytes(tensor.dtype);
  if (element_bytes == 0) {
    return absl::DataLossError(
        absl::StrCat("has the dtype '", Printable(tensor.dtype), "', which is unknown"));
  }
  ASSIGN_OR_RETURN(tensor.shape, NumbersOf(entry, "shape", SafetensorsReader::kDimensionsMax));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> offsets, NumbersOf(entry, "data_offsets", 2));
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > size - data) {
    return absl::DataLossError(absl::StrCat("has the data_offsets ", ShapeText(offsets),
                                            ", but the file has ", size - data,
                                            " bytes of values: the file may be truncated"));
  }
  uint64_t bytes = 0;
  if (!BytesOfShape(tensor.shape, element_bytes, bytes) || bytes != offsets[1] - offsets[0]) {
    return absl::DataLossError(absl::StrCat("has ", offsets[1] - offsets[0],
                                            " bytes, which do not match ", tensor.dtype, " ",
                                            ShapeText(tensor.shape)));
  }
  tensor.begin = data + offsets[0];
  tensor.end = data + offsets[1];
  return tensor;
}

// Sorts the tensors by position and checks that each begins where the previous one ends.
absl::Status CheckPlaces(std::vector<StoredTensor>& tensors, uint64_t data, uint64_t size) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = data;
  const StoredTensor* before = nullptr;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin < end) {
      return absl::DataLossError(
          absl::StrCat(Quoted(before->name), " and ", Quoted(tensor.name), " overlap"));
    }
    if (tensor.begin > end) {
      return absl::DataLossError(absl::StrCat(tensor.begin - end, " bytes before ",
                                              Quoted(tensor.name), " belong to no tensor"));
    }
    end = tensor.end;
    before = &tensor;
  }
  if (end == size) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the last ", size - end, " bytes belong to no tensor"));
}

absl::StatusOr<std::vector<StoredTensor>> ReadTensors(const FileReader& file) {
  uint64_t length = 0;
  if (file.size() < kLengthBytes) {
    return absl::DataLossError(
        absl::StrCat("has ", file.size(), " bytes, too few for a safetensors file"));
  }
  RETURN_IF_ERROR(file.ReadAt(0, {reinterpret_cast<uint8_t*>(&length), kLengthBytes}));
  if (length > SafetensorsReader::kHeaderBytesMax || length > file.size() - kLengthBytes) {
    return absl::DataLossError(
        absl::StrCat("begins with a header of ", length, " bytes, but the file has ", file.size(),
                     " bytes, and a header has at most ", SafetensorsReader::kHeaderBytesMax,
                     " bytes: the file is truncated, or it is not a safetensors file"));
  }
  std::string text(length, '\0');
  RETURN_IF_ERROR(file.ReadAt(kLengthBytes, {reinterpret_cast<uint8_t*>(text.data()), length}));
  ASSIGN_OR_RETURN(const Json header, ParseHeader(text));
  std::vector<StoredTensor> tensors;
  const uint64_t data = kLengthBytes + length;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataEntry) continue;
    auto tensor = TensorOf(name, entry, data, file.size());
    RETURN_IF_ERROR(Annotate(tensor.status(), Quoted(name)));
    tensors.push_back(*std::move(tensor));
  }
  RETURN_IF_ERROR(CheckPlaces(tensors, data, file.size()));
  return tensors;
}

// Converts the values to float32. A value too large for float32 becomes infinite.
template <typename Stored, typename Convert>
void ConvertAll(const std::vector<uint8_t>& bytes, std::span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
    out[i] = convert(value);
  }
}

float FromHalf(uint16_t half) {
  const bool finite = (half & 0x7c00u) != 0x7c00u;
  return finite ? FromFp16(half) : std::numeric_limits<float>::infinity();
}

float FromDouble(double value) {
  // Return infinity for a value out of float32's range, because converting it would be undefined
  // behaviour.
  if (std::abs(value) > double{std::numeric_limits<float>::max()}) {
    return std::numeric_limits<float>::infinity();
  }
  return static_cast<float>(value);
}

void Convert(absl::string_view dtype, const std::vector<uint8_t>& bytes, std::span<float> out) {
  if (dtype == "F32") return ConvertAll<float>(bytes, out, [](float value) { return value; });
  if (dtype == "F64") return ConvertAll<double>(bytes, out, FromDouble);
  if (dtype == "F16") return ConvertAll<uint16_t>(bytes, out, FromHalf);
  ConvertAll<uint16_t>(bytes, out, FromBf16);
}

}  // namespace

uint64_t StoredTensor::elements() const {
  uint64_t elements = 1;
  for (const uint64_t side : shape) elements *= side;
  return elements;
}

std::string ShapeText(std::span<const uint64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  auto tensors = ReadTensors(file);
  RETURN_IF_ERROR(Annotate(tensors.status(), absl::StrCat("safetensors file '", path, "'")));
  return SafetensorsReader(std::move(file), *std::move(tensors));
}

const StoredTensor* SafetensorsReader::Find(absl::string_view name) const {
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

absl::Status SafetensorsReader::Read(const StoredTensor& tensor, std::span<float> out) const {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("safetensors file '", path(), "': ", Quoted(tensor.name), " ", what));
  };
  const bool floats = tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16" ||
                      tensor.dtype == "F64";
  if (!floats) {
    return wrong(absl::StrCat("has the dtype ", tensor.dtype,
                              ", but weights are read from F32, F16, BF16 and F64"));
  }
  const uint64_t element_bytes = DtypeBytes(tensor.dtype);
  std::vector<uint8_t> bytes;
  for (size_t first = 0; first < out.size(); first += kPiece) {
    const std::span<float> piece = out.subspan(first, std::min(kPiece, out.size() - first));
    bytes.resize(piece.size() * element_bytes);
    RETURN_IF_ERROR(file_.ReadAt(tensor.begin + first * element_bytes, bytes));
    Convert(tensor.dtype, bytes, piece);
    const auto bad =
        std::find_if(piece.begin(), piece.end(), [](float v) { return !std::isfinite(v); });
    if (bad == piece.end()) continue;
    const auto index = first + static_cast<size_t>(bad - piece.begin());
    return wrong(absl::StrCat("has a value at element ", index, " that is not a finite float32"));
  }
  return absl::OkStatus();
}

}  // namespace leeway
