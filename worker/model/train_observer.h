// Follows one batch through a model. With an observer, weights can arrive while earlier layers
// compute their forward pass, and contributions can leave while earlier layers still compute their
// backward pass (Poseidon, Zhang et al. 2017: wait-free backpropagation; ByteScheduler, Peng et al.
// 2019: the same across the border of two iterations).
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/blocks.h"

namespace leeway {

// The methods are called on the training thread, in this order: BeforeForward for each layer that
// has tensors, in the order of the layers, and for a large layer panel by panel; AfterForward;
// OnFinal any number of times. Ranges refer to the flat vector. An error ends the batch with that
// error. A method that is not overridden does nothing.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;

  // These weights are about to be read, and this part of the contribution may be written from now
  // on. Each element of the vector is named once or more in a batch.
  virtual absl::Status BeforeForward(std::span<const ElementRange> elements) {
    return absl::OkStatus();
  }
  // `loss_sum` is the sum of the losses over `examples`. Both are 0 if the worker has no batch.
  virtual absl::Status AfterForward(double loss_sum, uint64_t examples) { return absl::OkStatus(); }
  // Called when queued kernels make these elements of the contribution final. `device` is the whole
  // vector, in a device's own memory. Returns true if the observer copies the contribution to the
  // host itself, in kDown, perhaps together with later elements. It queues nothing else there.
  virtual bool BringDown(std::span<const ElementRange> elements, const float* device) {
    return false;
  }
  // The contribution of these elements is final, and the batch no longer reads their weights. Each
  // element is named once in a batch. `known_finite`: the device has checked that all of them are
  // finite. If false, they were not checked or one of them is not finite.
  virtual absl::Status OnFinal(std::span<const ElementRange> elements, bool known_finite) {
    return absl::OkStatus();
  }
};

}  // namespace leeway
