#include "server/rpc/server_queue.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "common/clock.h"
#include "common/queue_event.h"
#include "common/queue_poller.h"

namespace leeway {
namespace {

// The server was shut down: what is left are callbacks that run, and files being written.
constexpr Duration kGuestsLimit = std::chrono::seconds(30);

// Of the thread, if it takes from a queue.
thread_local QueuePoller* this_poller = nullptr;

}  // namespace

ServerQueue::ServerQueue(grpc::ServerBuilder& builder)
    : queue_(builder.AddCompletionQueue()), later_thread_([this] { RunLater(); }) {}

ServerQueue::~ServerQueue() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  // Without threads there are but calls that are awaited, and nobody to tell them.
  if (!threads_.empty()) WaitForGuests();
  {
    MutexLock lock(later_mutex_);
    later_ends_ = true;
    later_changed_.NotifyAll();
  }
  later_thread_.join();
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  // One that was never started must still be emptied.
  if (threads_.empty()) Loop(true);
}

void ServerQueue::Start() {
  const uint32_t threads = std::clamp(std::thread::hardware_concurrency() / 2, 1u, kThreadsMax);
  for (uint32_t i = 0; i < threads; ++i)
    threads_.emplace_back([this, threads] { Loop(threads == 1); });
}

void ServerQueue::Later(std::function<void()> work) {
  MutexLock lock(later_mutex_);
  later_.push_back(std::move(work));
  later_changed_.NotifyAll();
}

void ServerQueue::RunLater() {
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(later_mutex_);
      while (later_.empty() && !later_ends_) later_changed_.Wait(later_mutex_);
      if (later_.empty()) return;
      work = std::move(later_.front());
      later_.pop_front();
    }
    work();
  }
}

void ServerQueue::Enter() {
  MutexLock lock(guests_mutex_);
  ++guests_;
}

void ServerQueue::Leave() {
  MutexLock lock(guests_mutex_);
  if (--guests_ == 0) guest_left_.NotifyAll();
}

void ServerQueue::WaitForGuests() {
  const Time deadline = std::chrono::steady_clock::now() + kGuestsLimit;
  MutexLock lock(guests_mutex_);
  while (guests_ > 0 && guest_left_.WaitUntil(guests_mutex_, deadline)) {
  }
  if (guests_ > 0) spdlog::error("{} calls have not ended with the server", guests_);
}

void ServerQueue::IfRunning(const std::function<void()>& begin) {
  MutexLock lock(mutex_);
  if (!stopped_) begin();
}

bool ServerQueue::AtRest(std::function<void()> work) {
  if (this_poller == nullptr) return false;
  this_poller->AtRest(std::move(work));
  return true;
}

void ServerQueue::Took(uint64_t bytes) {
  if (this_poller != nullptr) this_poller->ExpectSmall(bytes <= QueuePoller::kSmallBytes);
}

void ServerQueue::Loop(bool alone) {
  void* tag = nullptr;
  bool ok = false;
  QueuePoller poller(queue_.get(), alone);
  this_poller = &poller;
  const gpr_timespec never = gpr_inf_future(GPR_CLOCK_MONOTONIC);
  while (poller.Next(&tag, &ok, never) == grpc::CompletionQueue::GOT_EVENT) {
    QueueEvent::RunTag(tag, ok);
  }
  this_poller = nullptr;
}

}  // namespace leeway
