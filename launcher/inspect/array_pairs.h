// Which arrays of a NumPy archive, or of several files, belong together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

struct NamedArray {
  // Of the archive, or of the file without its folder and suffix.
  std::string name;
  std::vector<uint64_t> shape;
};

// Indices of features and of their labels.
struct ArrayPair {
  size_t features = 0;
  size_t labels = 0;
};

struct ArrayPairs {
  ArrayPair train;
  std::optional<ArrayPair> test;
};

// By their names, such as x_train and y_train, test_images and test_labels, and by their lengths:
// features have two dimensions or more, labels one. INVALID_ARGUMENT with all arrays where names
// and lengths leave a choice, or where features have no labels.
absl::StatusOr<ArrayPairs> PairArrays(const std::vector<NamedArray>& arrays);

}  // namespace leeway
