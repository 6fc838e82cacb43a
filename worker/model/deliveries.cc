#include "worker/model/deliveries.h"

#include "common/status.h"

namespace leeway {

void Deliveries::Begin(TrainObserver& observer, const BatchLoss& loss, const BatchSize& size) {
  observer_ = &observer;
  loss_ = &loss;
  size_ = size;
  items_.clear();
}

absl::Status Deliveries::AddLoss(StreamEvent known) { return Add({known, {}}); }

absl::Status Deliveries::AddFinal(StreamEvent arrived, std::span<const ElementRange> elements,
                                  const float* finite) {
  return Add({arrived, elements, finite});
}

absl::Status Deliveries::Add(const Item& item) {
  if (items_.empty() && backend_.Done(item.event)) return Tell(item);
  items_.push_back(item);
  return Poll();
}

absl::Status Deliveries::Poll() {
  while (!items_.empty() && backend_.Done(items_.front().event)) {
    const Item item = items_.front();
    items_.pop_front();
    RETURN_IF_ERROR(Tell(item));
  }
  return absl::OkStatus();
}

absl::Status Deliveries::Finish() {
  while (!items_.empty()) {
    RETURN_IF_ERROR(backend_.Await(items_.front().event));
    RETURN_IF_ERROR(Poll());
  }
  return backend_.status();
}

absl::Status Deliveries::Tell(const Item& item) {
  // If the device has failed, its results are undefined and must not be reported.
  RETURN_IF_ERROR(backend_.status());
  if (item.elements.empty()) {
    const double loss = loss_->total() / static_cast<double>(size_.labels_each);
    return observer_->AfterForward(loss, size_.examples);
  }
  if (item.finite == nullptr) return observer_->OnFinal(item.elements, false);
  if (*item.finite != 0 && *item.finite != 1) {
    return absl::InternalError(
        "the gradient arrived without the device's flag that says whether it is finite");
  }
  return observer_->OnFinal(item.elements, *item.finite == 1);
}

}  // namespace leeway
