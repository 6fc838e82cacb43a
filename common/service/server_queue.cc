#include "common/service/server_queue.h"

#include <algorithm>
#include <utility>

#include <grpcpp/alarm.h>
#include <spdlog/spdlog.h>

#include "common/clock.h"
#include "common/machine.h"
#include "common/rpc/queue_event.h"
#include "common/rpc/queue_poller.h"
#include "common/service/shared_work.h"

namespace leeway {
namespace {

// The longest time that the queue waits for its guests after the server was shut down. The guests
// are then callbacks that still run, and files that are being written.
constexpr Duration kGuestsLimit = std::chrono::seconds(30);
constexpr uint32_t kThreadsMax = 16;

// The poller of this thread, or null if the thread does not take events from a queue.
thread_local QueuePoller* this_poller = nullptr;

}  // namespace

// An event that lets one more thread take part in shared work. It runs one part of the work each
// time that a thread takes it from the queue, so the thread can handle network events between two
// parts. It is deleted when no part is left.
class ServerQueue::Helper : public QueueEvent {
 public:
  Helper(ServerQueue* queue, std::shared_ptr<SharedWork> work)
      : queue_(queue), work_(std::move(work)) {}
  // Puts the event into the queue. Returns false if the queue is stopping.
  bool Call() {
    bool called = false;
    queue_->IfRunning([&] {
      alarm_.Set(queue_->get(), gpr_inf_past(GPR_CLOCK_MONOTONIC), Tag());
      called = true;
    });
    return called;
  }

 private:
  void Run(bool) override {
    if (!work_->RunNext() || !Call()) delete this;
  }

  ServerQueue* const queue_;
  const std::shared_ptr<SharedWork> work_;
  grpc::Alarm alarm_;
};

uint32_t ServerQueue::ThreadsHere() { return std::clamp(MachineProcessors() / 2, 1u, kThreadsMax); }

ServerQueue::ServerQueue(grpc::ServerBuilder& builder, Doorkeeper* doorkeeper, uint32_t threads)
    : queue_(builder.AddCompletionQueue()),
      doorkeeper_(doorkeeper),
      thread_count_(threads),
      later_thread_([this] { RunLater(); }) {}

ServerQueue::~ServerQueue() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  // Without threads the only guests are operations that accept further calls. No thread could end
  // them, so do not wait.
  if (!threads_.empty()) WaitForGuests();
  {
    MutexLock lock(later_mutex_);
    later_ends_ = true;
    later_changed_.NotifyAll();
  }
  later_thread_.join();
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  // Empty the queue here if it was never started.
  if (threads_.empty()) Loop(true);
}

void ServerQueue::Start() {
  for (uint32_t i = 0; i < thread_count_; ++i)
    threads_.emplace_back([this] { Loop(thread_count_ == 1); });
}

void ServerQueue::Share(uint64_t parts, const std::function<void(uint64_t)>& run) {
  const auto work = std::make_shared<SharedWork>(parts, run);
  const uint64_t helpers = std::min<uint64_t>(thread_count_, parts);
  for (uint64_t i = 1; i < helpers; ++i) {
    auto helper = std::make_unique<Helper>(this, work);
    // If the call succeeds, the helper owns itself.
    if (helper->Call()) helper.release();
  }
  work->Finish();
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
  if (guests_ > 0) spdlog::error("{} calls did not end although the server has ended", guests_);
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
