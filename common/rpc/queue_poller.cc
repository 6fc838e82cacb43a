#include "common/rpc/queue_poller.h"

#include <chrono>
#include <utility>

namespace leeway {
namespace {

using Queue = grpc::CompletionQueue;

// The longest time for which other events can delay the work in `at_rest_`.
constexpr Duration kGather = std::chrono::microseconds(50);

gpr_timespec AtOnce() { return gpr_inf_past(GPR_CLOCK_MONOTONIC); }

bool IsAtOnce(gpr_timespec deadline) {
  return gpr_time_cmp(deadline, gpr_inf_past(deadline.clock_type)) == 0;
}

}  // namespace

Queue::NextStatus QueuePoller::Next(void** tag, bool* ok, gpr_timespec deadline) {
  while (!at_rest_.empty()) {
    if (SteadyNow() - gathers_since_ < kGather) {
      const Queue::NextStatus status = queue_->AsyncNext(tag, ok, AtOnce());
      if (status != Queue::TIMEOUT) return status;
    }
    RunAtRest();
  }
  if (IsAtOnce(deadline)) return queue_->AsyncNext(tag, ok, deadline);
  const Time begun = SteadyNow();
  if (alone_ && small_) {
    const Queue::NextStatus status = Look(tag, ok, begun);
    if (status != Queue::TIMEOUT) return status;
  }
  const Queue::NextStatus status = queue_->AsyncNext(tag, ok, deadline);
  waits_.Waited(begun, SteadyNow(), status == Queue::TIMEOUT);
  return status;
}

Queue::NextStatus QueuePoller::Look(void** tag, bool* ok, Time begun) {
  Time last = begun;
  while (waits_.expected() && last - begun < BriefWaits::kLook) {
    const Queue::NextStatus status = queue_->AsyncNext(tag, ok, AtOnce());
    const Time now = SteadyNow();
    waits_.Looked(last, now);
    if (status != Queue::TIMEOUT) return status;
    last = now;
  }
  return Queue::TIMEOUT;
}

void QueuePoller::AtRest(std::function<void()> work) {
  if (at_rest_.empty()) gathers_since_ = SteadyNow();
  at_rest_.push_back(std::move(work));
}

void QueuePoller::RunAtRest() {
  std::vector<std::function<void()>> work;
  work.swap(at_rest_);
  for (const auto& each : work) each();
}

}  // namespace leeway
