// Pairs the features and labels among the arrays of a NumPy archive or of several files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

struct NamedArray {
  // The name in the archive, or the file's name without folder and suffix.
  std::string name;
  std::vector<uint64_t> shape;
};

// The indices of features and of their labels.
struct ArrayPair {
  size_t features = 0;
  size_t labels = 0;
};

struct ArrayPairs {
  ArrayPair train;
  std::optional<ArrayPair> test;
};

// Pairs arrays by their names, such as x_train and y_train, test_images and test_labels, and by
// their lengths. Features have two or more dimensions, labels have one. Returns INVALID_ARGUMENT,
// listing all arrays, if names and lengths do not determine the pairs, or if features have no
// labels.
absl::StatusOr<ArrayPairs> PairArrays(const std::vector<NamedArray>& arrays);

}  // namespace leeway
