#include "client/transport/queue_driver.h"

#include <chrono>

#include "common/clock.h"
#include "common/rpc/queue_event.h"

namespace leeway {
namespace {

// If no thread waits and no call is open for this time, the driver's own thread takes over the
// queue.
constexpr Duration kLeftAlone = std::chrono::milliseconds(2);
// If a thread has returned after a break this short, it will probably drive again. Waking another
// thread would cost more.
constexpr Duration kBackSoon = std::chrono::microseconds(50);

gpr_timespec At(Time deadline) {
  if (deadline == Time::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const Duration left = deadline - SteadyNow();
  // Passes a time in the past to gRPC, because gRPC rounds all times up to whole milliseconds, even
  // the present moment.
  if (left <= Duration::zero()) return gpr_inf_past(GPR_CLOCK_MONOTONIC);
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(left).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(us, GPR_TIMESPAN));
}

}  // namespace

void QueueDriver::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void QueueDriver::Stop() {
  {
    MutexLock lock(mutex_);
    over_ = true;
    background_.NotifyOne();
    free_.NotifyAll();
  }
  queue_.Shutdown();
  thread_.join();
}

void QueueDriver::CallBegan(uint64_t bytes) {
  ++open_calls_;
  open_bytes_ += bytes;
}

void QueueDriver::CallsEnded(uint64_t calls, uint64_t bytes) {
  open_calls_ -= calls;
  open_bytes_ -= bytes;
}

bool QueueDriver::RunNext(Time deadline) {
  void* tag = nullptr;
  bool ok = false;
  poller_.ExpectSmall(open_bytes_ <= QueuePoller::kSmallBytes);
  if (poller_.Next(&tag, &ok, At(deadline)) != grpc::CompletionQueue::GOT_EVENT) return false;
  QueueEvent::RunTag(tag, ok);
  return true;
}

// Waits until the driver's own thread must run the queue. If a worker's thread waits for each
// exchange, no thread runs the queue between two exchanges, because waking the driver's thread
// would cost more than an exchange. The driver's thread takes over by itself after kLeftAlone.
bool QueueDriver::TakeInBackground() {
  MutexLock lock(mutex_);
  while (!over_) {
    const Time now = SteadyNow();
    const Time left_alone = given_back_ + (open_calls_ > 0 ? kBackSoon : kLeftAlone);
    const bool free = !driven_ && waiting_ == 0;
    if (free && now >= left_alone) {
      driven_ = true;
      return true;
    }
    background_.WaitUntil(mutex_, free ? left_alone : now + kLeftAlone);
  }
  // After the end this thread takes the events that are left on the queue.
  driven_ = true;
  return true;
}

void QueueDriver::GiveBack() {
  poller_.RunAtRest();
  MutexLock lock(mutex_);
  driven_ = false;
  given_back_ = SteadyNow();
  if (waiting_ > 0) {
    free_.NotifyAll();
  } else if (open_calls_ > 0 && !back_soon_) {
    background_.NotifyOne();
  }
}

void QueueDriver::Drive(const std::function<bool()>& done, Time deadline) {
  {
    MutexLock lock(mutex_);
    const Time now = SteadyNow();
    // A thread whose deadline has passed only polls the queue, and will poll it again.
    back_soon_ = now - given_back_ < kBackSoon || deadline <= now;
    ++waiting_;
    // While others wait for the queue, the driving thread gives it back after each event.
    while (driven_ && !over_ && !done()) {
      if (deadline == Time::max()) {
        free_.Wait(mutex_);
      } else if (!free_.WaitUntil(mutex_, deadline)) {
        break;
      }
    }
    --waiting_;
    if (driven_ || over_) return;
    driven_ = true;
  }
  while (!done() && RunNext(deadline)) {
    MutexLock lock(mutex_);
    if (waiting_ > 0) free_.NotifyAll();
  }
  GiveBack();
}

void QueueDriver::Loop() {
  while (TakeInBackground()) {
    while (true) {
      if (!RunNext(Time::max())) return;
      MutexLock lock(mutex_);
      if (waiting_ > 0) break;
    }
    GiveBack();
  }
}

}  // namespace leeway
