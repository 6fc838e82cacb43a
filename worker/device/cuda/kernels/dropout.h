// Dropout with the same random words as on the CPU. A thread handles the four elements of one
// Philox block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/host_device.h"
#include "common/philox_block.h"

namespace leeway::cuda {

struct Dropout {
  static constexpr size_t kElements = 4;

  size_t count;
  // An element is dropped if its random word is below this threshold.
  uint64_t threshold;
  float scale;
  uint64_t key;
  uint64_t stream;
  const float* x;
  float* mask;
  float* y;

  LEEWAY_HOST_DEVICE void operator()(size_t block) const {
    uint32_t words[kElements] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                                 static_cast<uint32_t>(stream),
                                 static_cast<uint32_t>(stream >> 32)};
    PhiloxRounds(words, static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
    for (size_t lane = 0; lane < kElements; ++lane) {
      const size_t i = block * kElements + lane;
      if (i >= count) return;
      const float factor = words[lane] < threshold ? 0.0f : scale;
      mask[i] = factor;
      y[i] = x[i] * factor;
    }
  }
};

}  // namespace leeway::cuda
