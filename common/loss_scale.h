// The loss scale of workers.precision: fp16. A worker multiplies its loss by this scale, so that
// small gradients do not vanish in the products of the backward pass (Micikevicius et al. 2018,
// arXiv:1710.03740, section 3.2). The scale is a power of two. It is halved when a gradient
// overflows, and doubled after a long time without overflow.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "leeway/v1/job.pb.h"

namespace leeway {

inline bool ScalesLoss(const v1::TrainingJob& job) {
  return job.workers().precision() == v1::PRECISION_FP16;
}

// The first and the largest scale, as exponents of two. The smallest exponent is 0, which is the
// scale 1. An overflow at scale 1 is not caused by the scale.
inline constexpr uint32_t kLossScaleStart = 16;
inline constexpr uint32_t kLossScaleMost = 24;
// The scale is doubled after this number of clocks or steps without an overflow.
inline constexpr uint64_t kLossScaleDoublesAfter = 2000;

inline float LossScaleOf(uint32_t log2) { return std::ldexp(1.0f, static_cast<int>(log2)); }

// The loss scale of a worker that keeps no state between clocks. The scale is a function of the
// clock and of all overflows of this rank, in this process and in earlier ones. So a process that
// is started again, or that goes back to a checkpoint, computes the same scales. Pure.
class LossScaleHistory {
 public:
  // The number of entries that are kept. A job never goes back by that many entries, because after
  // a halving the scale needs kLossScaleDoublesAfter clocks before it overflows again.
  static constexpr size_t kEntriesMax = 256;

  // From `clock` on the scale is 2^log2, until it doubles.
  struct Entry {
    uint64_t clock = 0;
    uint32_t log2 = 0;
    bool operator==(const Entry&) const = default;
  };

  // Returns the exponent at `clock`. Entries of later clocks do not affect it.
  uint32_t At(uint64_t clock) const;
  // Returns false if the entry is known already. An entry that contradicts a known entry replaces
  // that entry and all later entries, because they depended on the replaced entry. If there are
  // more than kEntriesMax entries, the oldest one is dropped.
  bool Add(const Entry& entry);
  // Call this function when a gradient of `clock` has overflowed. The scale at `clock` must be
  // above 1. Adds and returns the entry with the halved scale.
  Entry Halve(uint64_t clock);

  const std::vector<Entry>& entries() const { return entries_; }
  bool operator==(const LossScaleHistory&) const = default;

 private:
  // Entries in ascending order of clocks.
  std::vector<Entry> entries_;
};

// The loss scale of a worker that takes local steps. The worker keeps the scale with its weights.
// Pure.
struct StepLossScale {
  uint32_t log2 = kLossScaleStart;
  // The number of steps since the scale last changed.
  uint64_t clean = 0;

  float factor() const { return LossScaleOf(log2); }
  // Call this function when a gradient of a step has overflowed. The scale must be above 1.
  void Halve();
  // Call this function after a step without an overflow.
  void Keep();
  bool operator==(const StepLossScale&) const = default;
};

}  // namespace leeway
