#include "worker/data/idx.h"

#include <span>

#include "common/status.h"
#include "worker/data/labels.h"
#include "worker/data/limits.h"

namespace leeway {
namespace {

constexpr uint8_t kUnsignedByte = 8;

struct Header {
  std::vector<uint32_t> dimensions;
  size_t bytes;
};

uint32_t BigEndian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

absl::Status Bad(const DataFile& file, size_t byte, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file.path, ": byte ", byte, ": ", what));
}

// A header whose dimensions agree with the size of the file.
absl::StatusOr<Header> ParseHeader(const DataFile& file, int min_dimensions, int max_dimensions) {
  const std::vector<uint8_t>& b = file.bytes;
  if (b.size() < 4) return Bad(file, b.size(), "the file ends within the magic number of IDX");
  if (b[0] != 0 || b[1] != 0)
    return Bad(file, 0, "not an IDX file: its magic number starts with two zeros");
  if (b[2] != kUnsignedByte) {
    return Bad(file, 2,
               absl::StrCat("elements of type ", b[2], "; only unsigned bytes (8) are read"));
  }
  if (b[3] < min_dimensions || b[3] > max_dimensions) {
    return Bad(file, 3,
               absl::StrCat(b[3], " dimensions where ", min_dimensions,
                            max_dimensions > min_dimensions ? " or more" : "", " belong"));
  }
  Header header{{}, size_t{4} + 4 * size_t{b[3]}};
  if (b.size() < header.bytes) return Bad(file, b.size(), "the file ends within its dimensions");
  uint64_t elements = 1;
  for (size_t at = 4; at < header.bytes; at += 4) {
    header.dimensions.push_back(BigEndian(&b[at]));
    if (header.dimensions.back() == 0)
      return Bad(file, at, "a dimension is 0: there are no examples");
    if (__builtin_mul_overflow(elements, header.dimensions.back(), &elements) ||
        elements > kMaxFileBytes) {
      return Bad(file, at, "the dimensions ask for more bytes than a data file may have");
    }
  }
  if (elements != b.size() - header.bytes) {
    return Bad(file, header.bytes,
               absl::StrCat("the dimensions ask for ", elements, " bytes, ",
                            b.size() - header.bytes, " follow"));
  }
  return header;
}

}  // namespace

absl::StatusOr<Examples> ParseIdx(DataFile images, const DataFile& labels, const LabelRule& rule) {
  ASSIGN_OR_RETURN(const Header image_header, ParseHeader(images, 2, 4));
  ASSIGN_OR_RETURN(const Header label_header, ParseHeader(labels, 1, 1));
  const size_t count = image_header.dimensions[0];
  if (label_header.dimensions[0] != count) {
    return Bad(labels, 4,
               absl::StrCat(label_header.dimensions[0], " labels for the ", count, " images of ",
                            images.path));
  }
  Examples examples;
  absl::StatusOr<ImageShape> shape = MakeShape(std::span(image_header.dimensions).subspan(1));
  if (!shape.ok()) return Bad(images, 8, shape.status().message());
  examples.shape = *shape;
  RETURN_IF_ERROR(CheckSize(count, shape->elements(), 1, images.path));
  examples.labels.reserve(count);
  for (size_t at = label_header.bytes; at < labels.bytes.size(); ++at) {
    absl::StatusOr<float> label = CheckLabel(labels.bytes[at], rule);
    if (!label.ok()) return Bad(labels, at, label.status().message());
    examples.labels.push_back(*label);
  }
  images.bytes.erase(images.bytes.begin(), images.bytes.begin() + image_header.bytes);
  examples.values = std::move(images.bytes);
  return examples;
}

}  // namespace leeway
