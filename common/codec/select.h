// Finds the largest values of a vector, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leeway {

// Returns the indices of the k values of largest magnitude, in ascending order; among equal values
// the first ones. 0 < k <= values.size() < 2^32. Takes a few passes, whatever the values are.
std::vector<uint32_t> LargestMagnitudes(std::span<const float> values, size_t k);

}  // namespace leeway
