// The copies of one batch between the host and a device with memory of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/blocks.h"
#include "common/buffer.h"
#include "worker/compute/backend.h"
#include "worker/model/batch_loss.h"
#include "worker/model/step_vectors.h"

namespace leeway {

// Makes copies and kernels wait for each other, but only if new ones were queued since the last
// wait. The caller says when it queues kernels. Not thread-safe.
class Transfers {
 public:
  // The contribution has `finite_cells` parts that are checked for finite values.
  Transfers(Backend& backend, size_t finite_cells);

  // Begins a batch. The vectors are the caller's. `home` says in which memory they are.
  void Begin(std::span<const float> weights, std::span<float> contribution, Home home);
  // Returns true if weights and contribution are copied between the caller's vectors and the
  // device.
  bool travels() const { return travels_; }

  // Copies `host` to `device`. Kernels that are queued after AwaitUp() see the copy.
  void Up(std::span<const float> host, float* device);
  // Copies these elements of the weights to `device`, where the whole vector is.
  void WeightsUp(std::span<const ElementRange> elements, float* device);
  // Makes kernels that are queued after this call wait for the copies to the device.
  void AwaitUp();

  // Says that kernels are queued. The next copy to the host waits for them.
  void NoteKernels() { computing_ = true; }
  // Makes copies to the host that are queued after this call wait for the kernels that are already
  // queued.
  void AwaitKernels();
  // Copies these elements of the contribution from `device`, where the whole vector is.
  void ContributionDown(std::span<const ElementRange> elements, const float* device);
  // Copies to the host the answer whether a part's values are finite. Returns the answer's host
  // address.
  const float* FiniteDown(size_t cell, const float* device);
  // Copies the loss sums to loss(); of a batch that is not mixed, only the first sum. The returned
  // event is done when the sums have arrived.
  StreamEvent LossDown(const LossSum* sums, float share, bool mixed);
  const BatchLoss& loss() const { return page_->loss; }

  // Waits until nothing is queued, and ignores errors.
  void Drain();

 private:
  // The loss has a page of its own, so that it can be pinned.
  struct alignas(4096) LossPage {
    BatchLoss loss;
  };

  Backend& backend_;
  std::unique_ptr<LossPage> page_ = std::make_unique<LossPage>();
  PinnedMemory page_pinned_;
  // The answers on the host. Empty if contributions are not copied.
  FloatBuffer finite_;
  PinnedMemory finite_pinned_;

  bool travels_ = false;
  std::span<const float> host_weights_;
  std::span<float> host_contribution_;
  // True if a copy to the device is under way, and no kernel waits for it yet.
  bool going_up_ = false;
  // True if kernels are queued, and no copy to the host waits for them yet.
  bool computing_ = false;
};

}  // namespace leeway
