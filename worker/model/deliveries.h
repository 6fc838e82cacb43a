// Results of a batch that are queued on the device and not yet reported to the batch's observer.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "absl/status/status.h"
#include "common/blocks.h"
#include "worker/compute/backend.h"
#include "worker/model/batch_loss.h"
#include "worker/model/train_observer.h"

namespace leeway {

struct BatchSize {
  uint64_t examples = 0;
  // The number of labels of each example. An example's loss is the mean over these labels.
  uint64_t labels_each = 1;
};

// Stands for a device's answer that has not arrived yet. A real answer is 0 or 1.
inline constexpr float kNoAnswer = -1;

// Reports results to an observer in the order in which they were added, each as soon as its event
// is done. On a CPU events are done at once. Not thread-safe.
class Deliveries {
 public:
  explicit Deliveries(Backend& backend) : backend_(backend) {}

  // Begins a new batch and forgets the batch before. The observer and the loss must outlive the
  // batch.
  void Begin(TrainObserver& observer, const BatchLoss& loss, const BatchSize& size);
  // Adds the loss. When the event is done, the loss is known and the forward pass is over.
  absl::Status AddLoss(StreamEvent known);
  // Adds elements of the contribution that are final when the event is done. The ranges must
  // outlive the batch. If `finite` is not null, *finite has arrived by then: 1 if all elements are
  // finite, otherwise 0.
  absl::Status AddFinal(StreamEvent arrived, std::span<const ElementRange> elements,
                        const float* finite = nullptr);

  // Does the same as TrainObserver::BringDown.
  bool BringDown(std::span<const ElementRange> elements, const float* device) {
    return observer_->BringDown(elements, device);
  }

  // Reports to the observer all results that are known by now. Returns the observer's or the
  // device's error.
  absl::Status Poll();
  // Waits for everything that is queued, and reports it to the observer.
  absl::Status Finish();

 private:
  struct Item {
    StreamEvent event;
    // The elements that become final. Empty if this item is the loss.
    std::span<const ElementRange> elements;
    const float* finite = nullptr;
  };
  absl::Status Add(const Item& item);
  absl::Status Tell(const Item& item);

  Backend& backend_;
  TrainObserver* observer_ = nullptr;
  const BatchLoss* loss_ = nullptr;
  BatchSize size_;
  std::deque<Item> items_;
};

}  // namespace leeway
