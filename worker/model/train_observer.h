// Follows one batch through a model. With an observer, weights can arrive while earlier layers
// compute their forward pass, and contributions can leave while earlier layers still compute their
// backward pass. This is wait-free backpropagation (Poseidon, Zhang et al. 2017), also across the
// border between two iterations (ByteScheduler, Peng et al. 2019).
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/blocks.h"

namespace leeway {

// The methods are called on the training thread, in this order. BeforeForward is called for each
// layer that has tensors, in the order of the layers, and for a large layer panel by panel.
// AfterForward is called once. OnFinal is called any number of times. Ranges refer to the flat
// vector. An error of a method ends the batch with that error. A method that is not overridden does
// nothing.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;

  // Called before the batch reads the weights of these elements. From now on the batch may also
  // write these elements of the contribution. In each batch, the calls together name every element
  // of the vector at least once.
  virtual absl::Status BeforeForward(std::span<const ElementRange> elements) {
    return absl::OkStatus();
  }
  // Called once the loss is known. `loss_sum` is the sum of the losses over `examples`. Both are 0
  // if the worker has no batch.
  virtual absl::Status AfterForward(double loss_sum, uint64_t examples) { return absl::OkStatus(); }
  // Called when queued kernels make these elements of the contribution final. `device` is the whole
  // vector, in a device's own memory. Returns true if the observer copies these elements to the
  // host itself, in kDown, perhaps together with later elements. The model then queues no copy of
  // these elements. The observer must queue nothing else in kDown.
  virtual bool BringDown(std::span<const ElementRange> elements, const float* device) {
    return false;
  }
  // Called when these elements of the contribution are final, and the batch no longer reads their
  // weights. In each batch every element is named once. If `known_finite` is true, the device has
  // checked that all of them are finite. If false, the elements were not checked, or one of them is
  // not finite.
  virtual absl::Status OnFinal(std::span<const ElementRange> elements, bool known_finite) {
    return absl::OkStatus();
  }
};

}  // namespace leeway
