// workers.precision: fp16. A worker multiplies its loss by this scale, so that small gradients do
// not vanish in the products of the backward pass (Micikevicius et al. 2018, arXiv:1710.03740,
// section 3.2). The scale is a power of two. It is halved when a gradient overflows, and doubled
// after a long time without overflow.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "leeway/v1/job.pb.h"

namespace leeway {

// Whether a job's workers scale their loss.
inline bool ScalesLoss(const v1::TrainingJob& job) {
  return job.workers().precision() == v1::PRECISION_FP16;
}

// Exponents of two. At the minimum (0) an overflow is not caused by the scale.
inline constexpr uint32_t kLossScaleStart = 16;
inline constexpr uint32_t kLossScaleMost = 24;
// The scale is doubled after this number of clocks or steps without an overflow.
inline constexpr uint64_t kLossScaleDoublesAfter = 2000;

inline float LossScaleOf(uint32_t log2) { return std::ldexp(1.0f, static_cast<int>(log2)); }

// The scale of a worker that keeps no state between clocks. It is a function of the clock and of
// the overflows that the rank's lives have met. So a new life, or one that goes back to a
// checkpoint, computes the same scales. Pure.
class LossScaleHistory {
 public:
  // Covers more than a job goes back: after a halving the scale needs kLossScaleDoublesAfter clocks
  // to overflow again.
  static constexpr size_t kEntriesMax = 256;

  // From `clock` on the scale is 2^log2, until it doubles.
  struct Entry {
    uint64_t clock = 0;
    uint32_t log2 = 0;
    bool operator==(const Entry&) const = default;
  };

  // Returns the exponent at `clock`. Entries of later clocks do not affect it.
  uint32_t At(uint64_t clock) const;
  // Returns false if the entry is known. An entry that contradicts a known one replaces it and all
  // later ones, which followed from it. Beyond kEntriesMax the oldest entry is dropped.
  bool Add(const Entry& entry);
  // Call it when the scale of `clock`, which is above 1, has overflowed. Adds and returns the entry
  // that applies next.
  Entry Halve(uint64_t clock);

  const std::vector<Entry>& entries() const { return entries_; }
  bool operator==(const LossScaleHistory&) const = default;

 private:
  // Entries in ascending order of clocks.
  std::vector<Entry> entries_;
};

// The scale of a worker that takes local steps. The worker keeps it with its weights. Pure.
struct StepLossScale {
  uint32_t log2 = kLossScaleStart;
  // The number of steps since the scale last changed.
  uint64_t clean = 0;

  float factor() const { return LossScaleOf(log2); }
  // Call it when a step has overflowed; the scale must be above 1.
  void Halve();
  // Call it when a step has not overflowed.
  void Keep();
  bool operator==(const StepLossScale&) const = default;
};

}  // namespace leeway
