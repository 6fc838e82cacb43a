// Examples as the files have them, before normalisation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/shape.h"

namespace leeway {

// Bytes stay bytes (a quarter of the memory); they stand for byte / 255.
using ExampleValues = std::variant<std::vector<uint8_t>, std::vector<float>>;

// `values` has labels.size() x shape.elements() elements, images in NHWC. A NaN among the floats is
// a missing value; all others are finite.
struct Examples {
  ImageShape shape;
  ExampleValues values;
  std::vector<float> labels;
  // Names of the elements, where the files have names: "height", "sex=female".
  std::vector<std::string> columns = {};
  // With loss logistic, what the files call the class that is not 1: -1 or 0, absent without any.
  std::optional<int> negative = std::nullopt;

  size_t size() const { return labels.size(); }
  // Of the values in memory.
  uint64_t bytes() const;
  // Keeps the rows whose flag is set. One flag a row.
  void Keep(const std::vector<bool>& rows);
  // `other`, read from `path`, goes behind. INVALID_ARGUMENT if its shape, kind, columns or labels
  // are others, RESOURCE_EXHAUSTED beyond kMaxDatasetBytes or kMaxExamples.
  absl::Status Append(Examples other, const std::string& path);
};

// [features], [height, width] or [height, width, channels], each at least 1, kMaxElements together.
absl::StatusOr<ImageShape> MakeShape(std::span<const uint32_t> dimensions);
// INVALID_ARGUMENT naming the first feature in which they differ: "its feature 2 is 'a', where the
// training data has 'b'". No names at all are no difference.
absl::Status CheckSameColumns(std::span<const std::string> columns,
                              std::span<const std::string> trained);
// "28x28x1", or "13 features".
std::string DescribeShape(const ImageShape& shape);
// RESOURCE_EXHAUSTED unless `count` examples of `elements` values of `value_bytes` each may be
// held.
absl::Status CheckSize(uint64_t count, uint64_t elements, uint64_t value_bytes,
                       const std::string& path);

}  // namespace leeway
