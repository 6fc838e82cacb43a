// What a batch has queued and its observer is still to hear of.
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
  // Labels of an example, whose losses it has the mean of.
  uint64_t labels_each = 1;
};

// In place of a device's answer, 0 or 1, that is still to come.
inline constexpr float kNoAnswer = -1;

// Tells an observer in the order in which things were added, each when its event is done. On a CPU
// that is at once. Not thread-safe.
class Deliveries {
 public:
  explicit Deliveries(Backend& backend) : backend_(backend) {}

  // A new batch: nothing is left of the one before. Both outlive the batch.
  void Begin(TrainObserver& observer, const BatchLoss& loss, const BatchSize& size);
  // The loss is known, and the forward pass over, when the event is done.
  absl::Status AddLoss(StreamEvent known);
  // These elements of the contribution are; the ranges outlive the batch. `finite`, where not null,
  // has arrived with them: whether all of them are, 1 or 0.
  absl::Status AddFinal(StreamEvent arrived, std::span<const ElementRange> elements,
                        const float* finite = nullptr);

  // As the observer's.
  bool BringDown(std::span<const ElementRange> elements, const float* device) {
    return observer_->BringDown(elements, device);
  }

  // Tells what can be told now. The observer's error, or the device's.
  absl::Status Poll();
  // Waits for the rest, and tells it.
  absl::Status Finish();

 private:
  struct Item {
    StreamEvent event;
    // None: it is the loss.
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
