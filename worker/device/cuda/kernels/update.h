// Kernels on whole vectors: an optimizer's step, and a check for finite values. Every thread that
// finds a value that is not finite stores the same 0 in the flag.
#pragma once

#include <cmath>
#include <cstddef>

#include "common/host_device.h"
#include "common/update/formula.h"

namespace leeway::cuda {

LEEWAY_HOST_DEVICE inline bool IsFinite(float value) { return value - value == 0.0f; }

struct UpdateTrained {
  static constexpr size_t kMaxSlots = 2;

  UpdateFormula formula;
  size_t slot_count;
  const float* gradient;
  float* weights;
  float* slots[kMaxSlots];
  float* finite;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    UpdateFormula::Element element;
    element.weight = weights[i];
    for (size_t slot = 0; slot < slot_count; ++slot) element.slots[slot] = slots[slot][i];
    const UpdateFormula::Element after = formula.Apply(element, gradient[i]);
    bool is_finite = IsFinite(after.weight);
    weights[i] = after.weight;
    for (size_t slot = 0; slot < slot_count; ++slot) {
      slots[slot][i] = after.slots[slot];
      is_finite = is_finite && IsFinite(after.slots[slot]);
    }
    if (!is_finite) *finite = 0.0f;
  }
};

struct ScaleAndCheck {
  float factor;
  float* x;
  // The flag of the check. Null if the caller does not need the check.
  float* finite;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const float value = factor * x[i];
    // If the factor is 1, the vector is only checked, so nothing is written.
    if (factor != 1.0f) x[i] = value;
    if (finite != nullptr && !IsFinite(value)) *finite = 0.0f;
  }
};

// Updates values that are averaged, not trained. A value moves by `share` of the difference, or is
// replaced.
struct UpdateAveraged {
  float share;
  const float* contribution;
  float* weights;
  float* finite;

  LEEWAY_HOST_DEVICE void operator()(size_t i) const {
    const float given = contribution[i];
    const float value = share == 1.0f ? given : weights[i] + share * (given - weights[i]);
    weights[i] = value;
    if (!IsFinite(value)) *finite = 0.0f;
  }
};

}  // namespace leeway::cuda
