// A range of the model's blocks.
#pragma once

#include <cstdint>

namespace leeway {

// The blocks [first, first + count).
struct BlockRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

}  // namespace leeway
