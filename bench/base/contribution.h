// The contributions of a worker that computes nothing.
#pragma once

#include <cstdint>
#include <span>

namespace leeway {

// Fills in values like those of a gradient, different for each rank. So a codec that selects values
// meets no long runs of equal values, and the largest value is not at the same position in every
// block.
void FillContribution(uint32_t rank, std::span<float> contribution);

}  // namespace leeway
