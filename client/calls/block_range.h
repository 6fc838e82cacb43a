// A run of blocks of the model.
#pragma once

#include <cstdint>

namespace leeway {

// Blocks [first, first + count).
struct BlockRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

}  // namespace leeway
