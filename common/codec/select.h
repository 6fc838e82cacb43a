// Finds the largest values of a vector, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leeway {

// Returns the indices of the k values of largest magnitude, in ascending order. Of equal magnitudes
// the first ones are chosen. 0 < k <= values.size() < 2^32. The function makes a few passes over
// the values. Their number does not depend on the values.
std::vector<uint32_t> LargestMagnitudes(std::span<const float> values, size_t k);

}  // namespace leeway
