#include "worker/data/idx.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/status.h"
#include "worker/data/labels.h"
#include "worker/data/limits.h"

namespace leeway {
namespace {

constexpr uint8_t kUnsignedByte = 8;
constexpr size_t kIdxMagic = 4;
// The number of bytes that are read at once. Memory is used only as content arrives, so a wrong
// header alone cannot use up memory.
constexpr uint64_t kIdxPiece = 1 << 20;

struct Header {
  std::vector<uint32_t> dimensions;
  size_t bytes;
  // The product of the dimensions, which is the number of bytes that follow.
  uint64_t elements = 1;
};

uint32_t BigEndian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

absl::Status CheckMagic(const DataFile& file, std::span<const uint8_t> b, int min_dimensions,
                        int max_dimensions) {
  if (b[0] != 0 || b[1] != 0)
    return BadByte(file, 0, "not an IDX file: the magic number must start with two zeros");
  if (b[2] != kUnsignedByte) {
    return BadByte(file, 2,
                   absl::StrCat("elements of type ", b[2], "; only unsigned bytes (8) are read"));
  }
  if (b[3] >= min_dimensions && b[3] <= max_dimensions) return absl::OkStatus();
  return BadByte(file, 3,
                 absl::StrCat(b[3], " dimensions, but this file must have ", min_dimensions,
                              max_dimensions > min_dimensions ? " or more" : ""));
}

// Reads the header and leaves `file` at the first byte after it.
absl::StatusOr<Header> ReadHeader(DataFile& file, int min_dimensions, int max_dimensions) {
  uint8_t magic[kIdxMagic];
  ASSIGN_OR_RETURN(size_t count, file.bytes->Read(magic));
  if (count < kIdxMagic)
    return BadByte(file, count, "the file ends within the magic number of IDX");
  RETURN_IF_ERROR(CheckMagic(file, magic, min_dimensions, max_dimensions));
  std::vector<uint8_t> dimensions(4 * size_t{magic[3]});
  Header header{{}, kIdxMagic + dimensions.size()};
  ASSIGN_OR_RETURN(count, file.bytes->Read(dimensions));
  if (count < dimensions.size())
    return BadByte(file, kIdxMagic + count, "the file ends within its dimensions");
  for (size_t at = 0; at < dimensions.size(); at += 4) {
    header.dimensions.push_back(BigEndian(&dimensions[at]));
    if (header.dimensions.back() == 0)
      return BadByte(file, kIdxMagic + at, "a dimension is 0, so the file has no examples");
    if (__builtin_mul_overflow(header.elements, header.dimensions.back(), &header.elements) ||
        header.elements > kMaxFileBytes) {
      return BadByte(file, kIdxMagic + at,
                     "the dimensions ask for more bytes than a data file may have");
    }
  }
  return header;
}

// Reads all bytes after the header. The header specifies their number.
absl::StatusOr<std::vector<uint8_t>> ReadElements(DataFile& file, const Header& header) {
  std::vector<uint8_t> elements;
  elements.reserve(header.elements);
  const auto bad = [&](auto follow) {
    return BadByte(file, header.bytes,
                   absl::StrCat("the dimensions ask for ", header.elements, " bytes, but ", follow,
                                " follow"));
  };
  while (elements.size() < header.elements) {
    const size_t old = elements.size();
    elements.resize(std::min(old + kIdxPiece, header.elements));
    ASSIGN_OR_RETURN(const size_t count, file.bytes->Read(std::span(elements).subspan(old)));
    if (old + count < elements.size()) return bad(old + count);
  }
  // Tries to read beyond the last byte, because packed content is verified only at its end.
  uint8_t beyond[1];
  ASSIGN_OR_RETURN(const size_t count, file.bytes->Read(beyond));
  if (count > 0) return bad("more");
  return elements;
}

absl::StatusOr<std::vector<float>> ReadIdxLabels(DataFile& file, const Header& header,
                                                 const LabelRule& rule) {
  ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, ReadElements(file, header));
  std::vector<float> labels;
  labels.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    absl::StatusOr<float> label = CheckLabel(bytes[i], rule);
    if (!label.ok()) return BadByte(file, header.bytes + i, label.status().message());
    labels.push_back(*label);
  }
  return labels;
}

}  // namespace

absl::StatusOr<Examples> ParseIdx(DataFile images, DataFile labels, const LabelRule& rule) {
  ASSIGN_OR_RETURN(const Header image_header, ReadHeader(images, 2, 4));
  ASSIGN_OR_RETURN(const Header label_header, ReadHeader(labels, 1, 1));
  const size_t count = image_header.dimensions[0];
  if (label_header.dimensions[0] != count) {
    return BadByte(labels, kIdxMagic,
                   absl::StrCat(label_header.dimensions[0], " labels for the ", count,
                                " images of ", images.path));
  }
  Examples examples;
  absl::StatusOr<ImageShape> shape = MakeShape(std::span(image_header.dimensions).subspan(1));
  if (!shape.ok()) return BadByte(images, 8, shape.status().message());
  examples.shape = *shape;
  RETURN_IF_ERROR(CheckSize(count, shape->elements(), 1, images.path));
  // The small file of labels is read first, so that images are read only if each has a label.
  ASSIGN_OR_RETURN(examples.labels, ReadIdxLabels(labels, label_header, rule));
  ASSIGN_OR_RETURN(examples.values, ReadElements(images, image_header));
  return examples;
}

}  // namespace leeway
