#include "worker/data/numpy/npy_array.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/codec/fp16.h"
#include "common/status.h"
#include "worker/data/limits.h"
#include "worker/data/numpy/npy_header.h"

namespace leeway {
namespace {

// The number of bytes that are read at once, so that memory is used only as content arrives. It is
// a multiple of the size of every element type.
constexpr size_t kArrayPiece = 1 << 20;

double FromHalf(uint16_t half) {
  const bool finite = (half & 0x7c00) != 0x7c00;
  if (finite) return FromFp16(half);
  if ((half & 0x3ff) != 0) return std::numeric_limits<double>::quiet_NaN();
  return (half & 0x8000) != 0 ? -HUGE_VAL : HUGE_VAL;
}

// Returns an element of `header.bytes` bytes as a double.
double Element(const NpyHeader& header, const uint8_t* from) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < header.bytes; ++i) {
    const uint32_t at = header.big_endian ? i : header.bytes - 1 - i;
    bits = bits << 8 | from[at];
  }
  if (header.kind == 'b') return bits != 0 ? 1 : 0;
  if (header.kind == 'u') return static_cast<double>(bits);
  if (header.kind == 'i') {
    const int unused = 64 - 8 * static_cast<int>(header.bytes);
    return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
  }
  if (header.bytes == 2) return FromHalf(static_cast<uint16_t>(bits));
  if (header.bytes == 4) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

uint64_t CountOf(const NpyHeader& header) {
  uint64_t count = 1;
  for (const uint64_t side : header.shape) count *= side;
  return count;
}

// Passes each piece of the `count` elements after the header to `take`, with the number of the
// piece's first element. Returns an error unless exactly `count` elements follow the header.
absl::Status ForEachPiece(
    DataFile& file, const NpyHeader& header, uint64_t count,
    absl::FunctionRef<absl::Status(uint64_t, std::span<const uint8_t>)> take) {
  std::vector<uint8_t> piece(std::min<uint64_t>(kArrayPiece, count * header.bytes));
  const auto bad = [&](auto follow) {
    return BadByte(file, header.size,
                   absl::StrCat("the shape asks for ", count * header.bytes, " bytes, but ", follow,
                                " follow"));
  };
  const uint64_t all = count * header.bytes;
  for (uint64_t done = 0; done < all;) {
    const std::span wanted = std::span(piece).first(std::min<uint64_t>(piece.size(), all - done));
    ASSIGN_OR_RETURN(const size_t got, file.bytes->Read(wanted));
    if (got < wanted.size()) return bad(done + got);
    RETURN_IF_ERROR(take(done / header.bytes, wanted));
    done += got;
  }
  uint8_t beyond[1];
  ASSIGN_OR_RETURN(const size_t more, file.bytes->Read(beyond));
  return more > 0 ? bad("more") : absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ReadNpyLabels(DataFile& file, const NpyHeader& header,
                                                 LabelReader& reader) {
  std::vector<float> labels;
  const auto take = [&](uint64_t first, std::span<const uint8_t> bytes) {
    for (size_t i = 0; i < bytes.size() / header.bytes; ++i) {
      const auto label = reader.Read(Element(header, bytes.data() + i * header.bytes));
      if (!label.ok()) {
        return BadByte(file, header.size + (first + i) * header.bytes, label.status().message());
      }
      labels.push_back(*label);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachPiece(file, header, header.shape[0], take));
  return labels;
}

absl::StatusOr<std::vector<uint8_t>> ReadBytes(DataFile& file, const NpyHeader& header) {
  std::vector<uint8_t> values;
  values.reserve(CountOf(header));
  const auto take = [&](uint64_t, std::span<const uint8_t> bytes) {
    values.insert(values.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachPiece(file, header, CountOf(header), take));
  return values;
}

absl::StatusOr<std::vector<float>> ReadFloats(DataFile& file, const NpyHeader& header) {
  std::vector<float> values;
  values.reserve(CountOf(header));
  const auto take = [&](uint64_t first, std::span<const uint8_t> bytes) {
    for (size_t i = 0; i < bytes.size() / header.bytes; ++i) {
      const double value = Element(header, bytes.data() + i * header.bytes);
      values.push_back(static_cast<float>(value));
      if (std::isinf(values.back())) {
        return BadByte(file, header.size + (first + i) * header.bytes,
                       absl::StrCat(value, " is not finite as a float"));
      }
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachPiece(file, header, CountOf(header), take));
  return values;
}

bool IsBytes(const NpyHeader& header) { return header.kind == 'u' && header.bytes == 1; }

absl::StatusOr<ImageShape> ShapeOf(const DataFile& file, const NpyHeader& header) {
  if (header.shape.size() < 2) {
    return BadByte(
        file, header.size,
        absl::StrCat(header.shape.size(),
                     " dimensions; features must have [examples, features], "
                     "[examples, height, width] or [examples, height, width, channels]"));
  }
  std::vector<uint32_t> sides;
  for (const uint64_t side : std::span(header.shape).subspan(1)) {
    sides.push_back(static_cast<uint32_t>(std::min<uint64_t>(side, kMaxElements + 1)));
  }
  absl::StatusOr<ImageShape> shape = MakeShape(sides);
  if (!shape.ok()) return BadByte(file, header.size, shape.status().message());
  if (header.shape[0] == 0) return BadByte(file, header.size, "the array has no examples");
  RETURN_IF_ERROR(CheckSize(header.shape[0], shape->elements(), IsBytes(header) ? 1 : sizeof(float),
                            file.path));
  return shape;
}

}  // namespace

absl::StatusOr<Examples> ParseNpy(DataFile features, DataFile labels, const LabelRule& rule) {
  ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(features));
  ASSIGN_OR_RETURN(const NpyHeader of_labels, ReadNpyHeader(labels));
  Examples examples;
  ASSIGN_OR_RETURN(examples.shape, ShapeOf(features, header));
  if (of_labels.shape.size() != 1) {
    return BadByte(
        labels, of_labels.size,
        absl::StrCat(of_labels.shape.size(), " dimensions; labels must have one: [examples]"));
  }
  if (of_labels.shape[0] != header.shape[0]) {
    return BadByte(labels, of_labels.size,
                   absl::StrCat(of_labels.shape[0], " labels for the ", header.shape[0],
                                " examples of ", features.path));
  }
  // The small file of labels is read first, so that features are read only if each example has a
  // label.
  LabelReader reader(rule);
  ASSIGN_OR_RETURN(examples.labels, ReadNpyLabels(labels, of_labels, reader));
  examples.negative = reader.negative();
  if (IsBytes(header)) {
    ASSIGN_OR_RETURN(examples.values, ReadBytes(features, header));
  } else {
    ASSIGN_OR_RETURN(examples.values, ReadFloats(features, header));
  }
  return examples;
}

}  // namespace leeway
