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

// The values of examples. Bytes are kept as bytes, which occupy a quarter of the memory of floats.
// A byte stands for byte / 255.
using ExampleValues = std::variant<std::vector<uint8_t>, std::vector<float>>;

// Examples with their labels. `values` has labels.size() x shape.elements() elements, and images
// are NHWC. A NaN among the floats is a missing value; all other floats are finite.
struct Examples {
  ImageShape shape;
  ExampleValues values;
  std::vector<float> labels;
  // The names of the elements, such as "height" and "sex=female". Empty if the files have no names.
  std::vector<std::string> columns = {};
  // For the logistic loss, where one class has the label 1: the label that the other class has in
  // the files, -1 or 0. Absent if no example belongs to the other class.
  std::optional<int> negative = std::nullopt;

  size_t size() const { return labels.size(); }
  // Returns the number of bytes of memory that the values occupy.
  uint64_t bytes() const;
  // Keeps the rows whose flag is set. `rows` has one flag for each row.
  void Keep(const std::vector<bool>& rows);
  // Appends `other`, which was read from `path`. Returns INVALID_ARGUMENT if the shape, kind of
  // values, columns or labels of `other` do not match, and RESOURCE_EXHAUSTED beyond
  // kMaxDatasetBytes or kMaxExamples.
  absl::Status Append(Examples other, const std::string& path);
};

// Makes a shape. `dimensions` is [features], [height, width] or [height, width, channels]. Each
// dimension must be at least 1, and their product at most kMaxElements.
absl::StatusOr<ImageShape> MakeShape(std::span<const uint32_t> dimensions);
// Returns INVALID_ARGUMENT if the columns differ, naming the first feature that differs: "its
// feature 2 is 'a', but the training data has 'b'". Columns without names match any names.
absl::Status CheckSameColumns(std::span<const std::string> columns,
                              std::span<const std::string> trained);
// Returns a description such as "28x28x1" or "13 features".
std::string DescribeShape(const ImageShape& shape);
// Returns RESOURCE_EXHAUSTED, naming `path`, if `count` examples of `elements` values of
// `value_bytes` each are too large for a source.
absl::Status CheckSize(uint64_t count, uint64_t elements, uint64_t value_bytes,
                       const std::string& path);

}  // namespace leeway
