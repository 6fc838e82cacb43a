// The interface through which a runner runs one training step.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "worker/model/step_vectors.h"
#include "worker/model/train_observer.h"

namespace leeway {

struct StepResult {
  double loss_sum = 0;
  // The number of examples in the batch. It is 0 if the worker has no batch at this step.
  uint64_t examples = 0;
  // The number of these examples that stand in for damaged pictures.
  uint64_t replaced = 0;
  double data_seconds = 0;
  // The time of the step, without the time that the observer waited.
  double compute_seconds = 0;
  // The two parts of compute_seconds.
  double forward_seconds = 0;
  double backward_seconds = 0;
  // True if neither this step nor the clock's remaining steps have a batch, so that they need not
  // run.
  bool none_left = false;
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;
  // Runs step `step` of this worker, counted from 0, with the given weights, and writes the
  // contribution of the batch (model.h). Tells the observer when the step uses each part of the
  // vectors. Returns the observer's errors unchanged.
  virtual absl::StatusOr<StepResult> Run(uint64_t step, const StepVectors& vectors,
                                         TrainObserver& observer) = 0;
};

}  // namespace leeway
