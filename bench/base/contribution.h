// The contributions of a worker that computes nothing.
#pragma once

#include <cstdint>
#include <span>

namespace leeway {

// Fills in values like those of a gradient, and different for each rank. So a codec that selects
// values finds neither long runs of equal values, nor the largest value at the same position of
// every block.
void FillContribution(uint32_t rank, std::span<float> contribution);

}  // namespace leeway
