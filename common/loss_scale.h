// workers.precision: fp16. What a worker multiplies its loss by, so that small gradients do not
// vanish in the products of the backward pass (Micikevicius et al. 2018, arXiv:1710.03740, section
// 3.2): a power of two, which is halved when a gradient overflows, and doubled when none has for
// long.
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

// As exponents of two. At the least an overflow is no longer the scale's fault.
inline constexpr uint32_t kLossScaleStart = 16;
inline constexpr uint32_t kLossScaleMost = 24;
// Clocks or steps without an overflow after which the scale is doubled.
inline constexpr uint64_t kLossScaleDoublesAfter = 2000;

inline float LossScaleOf(uint32_t log2) { return std::ldexp(1.0f, static_cast<int>(log2)); }

// The scale of a worker that keeps nothing between clocks: a function of the clock, by the
// overflows that the rank's lives have met. So a new life, and one that goes back to a checkpoint,
// finds the same scales. Pure.
class LossScaleHistory {
 public:
  // More than a job goes back over: the scale takes kLossScaleDoublesAfter clocks to overflow
  // again.
  static constexpr size_t kEntriesMax = 256;

  // From `clock` on the scale is 2^log2, but for what it doubles.
  struct Entry {
    uint64_t clock = 0;
    uint32_t log2 = 0;
    bool operator==(const Entry&) const = default;
  };

  // Its exponent. Entries of later clocks say nothing of this one.
  uint32_t At(uint64_t clock) const;
  // False: it is known. An entry that contradicts what is known takes the place of that and of all
  // later ones, which followed from it. Beyond kEntriesMax the oldest goes.
  bool Add(const Entry& entry);
  // The scale of `clock`, which is above 1, has overflowed: adds and returns what holds next.
  Entry Halve(uint64_t clock);

  const std::vector<Entry>& entries() const { return entries_; }
  bool operator==(const LossScaleHistory&) const = default;

 private:
  // By rising clock.
  std::vector<Entry> entries_;
};

// The scale of a worker that takes steps of its own, which keeps it with its weights. Pure.
struct StepLossScale {
  uint32_t log2 = kLossScaleStart;
  // Steps since it has changed.
  uint64_t clean = 0;

  float factor() const { return LossScaleOf(log2); }
  // A step has overflowed; the scale is above 1.
  void Halve();
  // A step has not.
  void Keep();
  bool operator==(const StepLossScale&) const = default;
};

}  // namespace leeway
