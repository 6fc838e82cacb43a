#include "server/rpc/server_queue.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "common/clock.h"
#include "common/queue_event.h"

namespace leeway {
namespace {

// The server was shut down: what is left are callbacks that run, and files being written.
constexpr Duration kGuestsLimit = std::chrono::seconds(30);

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
  if (threads_.empty()) Loop();
}

void ServerQueue::Start() {
  const uint32_t threads = std::clamp(std::thread::hardware_concurrency() / 2, 1u, kThreadsMax);
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
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

void ServerQueue::Loop() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<QueueEvent*>(tag)->Run(ok);
}

}  // namespace leeway
