// Copies a product's factors to 16-bit elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/host_device.h"
#include "worker/compute/precision.h"

namespace leeway::cuda {

// The number of elements that a thread writes at once.
inline constexpr size_t kGroupHalves = 8;
struct alignas(16) HalvesGroup {
  uint16_t bits[kGroupHalves];
};

struct ToBf16 {
  LEEWAY_HOST_DEVICE uint16_t operator()(float value) const { return Bf16Bits(value); }
};
struct ToFp16 {
  LEEWAY_HOST_DEVICE uint16_t operator()(float value) const { return Fp16Bits(value); }
};

// Writes one group of the copy. A row of the copy is made of whole groups, so zeros follow the last
// column.
template <typename Convert>
struct CopyFactor {
  Convert convert;
  size_t columns;
  // The number of groups in a row.
  size_t groups;
  // The distance between rows of x, in elements.
  size_t stride;
  const float* x;
  HalvesGroup* copy;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const size_t row = i / groups;
    const size_t first = (i - row * groups) * kGroupHalves;
    HalvesGroup group;
    for (size_t lane = 0; lane < kGroupHalves; ++lane) {
      const size_t column = first + lane;
      group.bits[lane] = column < columns ? convert(x[row * stride + column]) : uint16_t{0};
    }
    copy[i] = group;
  }
};

}  // namespace leeway::cuda
