// Follows one batch through a model. With it weights can arrive while earlier layers compute
// forward, and contributions can leave while earlier layers still compute backward (Poseidon, Zhang
// et al. 2017: wait-free backpropagation; ByteScheduler, Peng et al. 2019: the same across the
// iteration's border).
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/blocks.h"

namespace leeway {

// Called on the thread that trains, in this order: BeforeForward for each layer that has tensors,
// in the order of the layers, a large one's panels one after the other; AfterForward; OnFinal in
// any number. Ranges are of the flat vector.
// An error ends the batch with that error. A method that is not overridden does nothing.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;

  // These weights are about to be read, and this part of the contribution may be written from now
  // on. Over the batch, every element of the vector is named.
  virtual absl::Status BeforeForward(std::span<const ElementRange> elements) {
    return absl::OkStatus();
  }
  // Sum of the losses over `examples`, which are 0 where the worker has no batch.
  virtual absl::Status AfterForward(double loss_sum, uint64_t examples) { return absl::OkStatus(); }
  // Called when queued kernels make these elements of the contribution final; `device` is the whole
  // vector, in a device's memory of its own. True: the observer brings the contribution to the host
  // itself, in kDown, these elements perhaps with later ones. It queues nothing else there.
  virtual bool BringDown(std::span<const ElementRange> elements, const float* device) {
    return false;
  }
  // The contribution of these elements is final, and the batch no longer reads their weights. Over
  // the batch, every element is named once. `known_finite`: the device has looked at all of them;
  // otherwise nobody has, or one is not finite.
  virtual absl::Status OnFinal(std::span<const ElementRange> elements, bool known_finite) {
    return absl::OkStatus();
  }
};

}  // namespace leeway
