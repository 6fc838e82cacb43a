// Examples as they are in the files, before normalisation.
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

// Bytes are kept as bytes, which take a quarter of the memory of floats. They stand for value /
// 255.
using ExampleValues = std::variant<std::vector<uint8_t>, std::vector<float>>;

// `values` has labels.size() x shape.elements() elements, images in NHWC. A NaN among the floats is
// a missing value; all others are finite.
struct Examples {
  ImageShape shape;
  ExampleValues values;
  std::vector<float> labels;
  // The names of the elements, where the files have names: "height", "sex=female".
  std::vector<std::string> columns = {};
  // With the logistic loss, the label that the files use for the class that is not 1: -1 or 0.
  // Absent if no example is of that class.
  std::optional<int> negative = std::nullopt;

  size_t size() const { return labels.size(); }
  // The memory that the values take.
  uint64_t bytes() const;
  // Keeps the rows whose flag is set. `rows` has one flag for each row.
  void Keep(const std::vector<bool>& rows);
  // Appends `other`, which was read from `path`. INVALID_ARGUMENT if its shape, kind of values,
  // columns or labels do not match; RESOURCE_EXHAUSTED beyond kMaxDatasetBytes or kMaxExamples.
  absl::Status Append(Examples other, const std::string& path);
};

// `dimensions` is [features], [height, width] or [height, width, channels]. Each must be at least
// 1, and their product at most kMaxElements.
absl::StatusOr<ImageShape> MakeShape(std::span<const uint32_t> dimensions);
// INVALID_ARGUMENT names the first feature that differs: "its feature 2 is 'a', but the training
// data has 'b'". Columns without names match any names.
absl::Status CheckSameColumns(std::span<const std::string> columns,
                              std::span<const std::string> trained);
// "28x28x1", or "13 features".
std::string DescribeShape(const ImageShape& shape);
// RESOURCE_EXHAUSTED if `count` examples of `elements` values of `value_bytes` each are too large
// for a source. The message names `path`.
absl::Status CheckSize(uint64_t count, uint64_t elements, uint64_t value_bytes,
                       const std::string& path);

}  // namespace leeway
