// Queued results of a batch that the batch's observer has not been told of yet.
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
  // The number of labels of each example. An example's loss is the mean over its labels.
  uint64_t labels_each = 1;
};

// Stands in for a device's answer, 0 or 1, that has not arrived yet.
inline constexpr float kNoAnswer = -1;

// Tells an observer of results in the order in which they were added, each when its event is done.
// On a CPU that is at once. Not thread-safe.
class Deliveries {
 public:
  explicit Deliveries(Backend& backend) : backend_(backend) {}

  // Begins a new batch and forgets the one before. The observer and the loss outlive the batch.
  void Begin(TrainObserver& observer, const BatchLoss& loss, const BatchSize& size);
  // When the event is done, the loss is known and the forward pass is over.
  absl::Status AddLoss(StreamEvent known);
  // When the event is done, these elements of the contribution are final. The ranges outlive the
  // batch. If `finite` is not null, it has arrived by then: 1 if all elements are finite, else 0.
  absl::Status AddFinal(StreamEvent arrived, std::span<const ElementRange> elements,
                        const float* finite = nullptr);

  // As TrainObserver::BringDown.
  bool BringDown(std::span<const ElementRange> elements, const float* device) {
    return observer_->BringDown(elements, device);
  }

  // Tells the observer what is known by now. Returns the observer's error or the device's.
  absl::Status Poll();
  // Waits for everything that is queued, and tells the observer.
  absl::Status Finish();

 private:
  struct Item {
    StreamEvent event;
    // Empty: this item is the loss.
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
