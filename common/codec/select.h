// The largest values of a vector, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leeway {

// Indices, ascending, of the k values of largest magnitude; of equal ones the first. 0 < k <=
// values.size() < 2^32. A few passes over the values, whatever they are.
std::vector<uint32_t> LargestMagnitudes(std::span<const float> values, size_t k);

}  // namespace leeway
