// The formulas of delta and elastic exchanges, for vectors on a device or on the host. `Vectors`
// computes them: a backend of Leeway's own worker (worker/compute/kernels.h), or HostVectors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/blocks.h"

namespace leeway {

// The functions that the formulas need, for a program whose weights are in plain memory.
struct HostVectors {
  static void Copy(uint64_t count, const float* from, float* to) { std::copy_n(from, count, to); }
  // Computes out = base + scale * (a - b), or scale * (a - b) without a base.
  static void AddDifference(uint64_t count, float scale, const float* a, const float* b,
                            const float* base, float* out) {
    for (uint64_t i = 0; i < count; ++i) {
      const float move = scale * (a[i] - b[i]);
      out[i] = base == nullptr ? move : base[i] + move;
    }
  }
};

// Writes the contribution of a delta exchange in this range. The first `trained` elements get the
// change start - local. The averaged elements after them get the local values unchanged.
template <typename Vectors>
void MakeDelta(Vectors&& vectors, const ElementRange& range, uint64_t trained, const float* start,
               const float* local, float* change) {
  const uint64_t begin = range.offset;
  const uint64_t end = std::clamp(trained, begin, range.end());
  vectors.AddDifference(end - begin, 1, start + begin, local + begin, nullptr, change + begin);
  vectors.Copy(range.end() - end, local + end, change + end);
}

// Moves the weights of an elastic worker: local -= alpha (sent - centre), where the centre is the
// answer to the weights `sent`.
template <typename Vectors>
void MoveToCentre(Vectors&& vectors, const ElementRange& range, float alpha, const float* sent,
                  const float* centre, float* local) {
  const uint64_t begin = range.offset;
  vectors.AddDifference(range.count, -alpha, sent + begin, centre + begin, local + begin,
                        local + begin);
}

}  // namespace leeway
