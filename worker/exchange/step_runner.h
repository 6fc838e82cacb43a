// One training step, as the exchanges see it.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "worker/model/train_observer.h"

namespace leeway {

struct StepResult {
  // Sum over the examples.
  double loss_sum = 0;
  // 0: the worker has no batch at this step.
  uint64_t examples = 0;
  double data_seconds = 0;
  // What the observer waited for is not in it.
  double compute_seconds = 0;
  // Of compute_seconds.
  double forward_seconds = 0;
  double backward_seconds = 0;
  // There is no batch for the other steps of its clock either: they need not be run.
  bool none_left = false;
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;
  // Step `step` (from 0, of this worker) with the given weights: writes the contribution of the
  // batch (model.h). Both vectors are flat and whole; what of them is used when, the observer is
  // told, whose errors are returned as they are.
  virtual absl::StatusOr<StepResult> Run(uint64_t step, std::span<const float> weights,
                                         std::span<float> contribution,
                                         TrainObserver& observer) = 0;
};

}  // namespace leeway
