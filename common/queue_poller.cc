#include "common/queue_poller.h"

#include <chrono>
#include <utility>

namespace leeway {
namespace {

using Queue = grpc::CompletionQueue;

// A small exchange, waking both sides included; and without.
constexpr Duration kBrief = std::chrono::microseconds(100);
constexpr Duration kLook = std::chrono::microseconds(50);
// One look takes a microsecond, and some tens where it takes a message from a socket; where it took
// so long, somebody else had the processor in between.
constexpr Duration kInterrupted = std::chrono::microseconds(200);
constexpr Duration kCalm = std::chrono::milliseconds(100);
// What waits for more is not kept waiting by others' events for longer.
constexpr Duration kGather = std::chrono::microseconds(50);

Time Now() { return std::chrono::steady_clock::now(); }

}  // namespace

Queue::NextStatus QueuePoller::Next(void** tag, bool* ok, gpr_timespec deadline) {
  const gpr_timespec at_once = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  while (!at_rest_.empty()) {
    if (Now() - gathers_since_ < kGather) {
      const Queue::NextStatus status = queue_->AsyncNext(tag, ok, at_once);
      if (status != Queue::TIMEOUT) return status;
    }
    RunAtRest();
  }
  const Time begun = Now();
  if (small_ && eager_) {
    const Queue::NextStatus status = LookAgain(tag, ok, begun);
    if (status != Queue::TIMEOUT) return status;
  }
  const Queue::NextStatus status = queue_->AsyncNext(tag, ok, deadline);
  const Time now = Now();
  eager_ = alone_ && status == Queue::GOT_EVENT && now - begun < kBrief && now >= calm_until_;
  return status;
}

Queue::NextStatus QueuePoller::LookAgain(void** tag, bool* ok, Time begun) {
  const gpr_timespec at_once = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  Time last = begun;
  while (last - begun < kLook) {
    const Queue::NextStatus status = queue_->AsyncNext(tag, ok, at_once);
    const Time now = Now();
    if (now - last > kInterrupted) calm_until_ = now + kCalm;
    if (status != Queue::TIMEOUT) return status;
    last = now;
  }
  return Queue::TIMEOUT;
}

void QueuePoller::AtRest(std::function<void()> work) {
  if (at_rest_.empty()) gathers_since_ = Now();
  at_rest_.push_back(std::move(work));
}

void QueuePoller::RunAtRest() {
  std::vector<std::function<void()>> work;
  work.swap(at_rest_);
  for (const auto& each : work) each();
}

}  // namespace leeway
