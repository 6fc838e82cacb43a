// The weighted sum of two received or own blocks, read in place.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "common/update/combine.h"
#include "common/wire/payload.h"

namespace leeway {

// Writes a_weight * a + b_weight * b to `out`. All three have the same number of floats.
inline void AddPayloads(const FloatPayload& a, float a_weight, const FloatPayload& b,
                        float b_weight, std::span<float> out) {
  const std::array<const FloatPayload*, 2> payloads{&a, &b};
  const std::array<float, 2> weights{a_weight, b_weight};
  Combiner combiner(payloads, weights);
  for (size_t offset = 0, run = 0, count; offset < out.size(); offset += count) {
    if (offset == run) run += combiner.Run(offset, out.size() - offset);
    count = std::min(Combiner::kMaxTile, run - offset);
    std::memcpy(out.data() + offset, combiner.Tile(offset, count), count * sizeof(float));
  }
}

}  // namespace leeway
