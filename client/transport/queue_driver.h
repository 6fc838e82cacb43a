// Who takes from a worker's completion queue, and runs what it brings: one thread at a time, the
// one that waits for an answer (Drive), else one of the driver's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include <grpcpp/completion_queue.h>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/queue_poller.h"

namespace leeway {

// Thread-safe. What is on the queue are QueueEvents.
class QueueDriver {
 public:
  QueueDriver() = default;
  // Stopped, or never started.
  ~QueueDriver() = default;
  QueueDriver(const QueueDriver&) = delete;

  grpc::CompletionQueue* queue() { return &queue_; }
  // From here on events are run.
  void Start();
  // Once no operation is under way: what is left is run, then nothing more.
  void Stop();
  // Runs events on this thread until `done`, asked between any two, or the deadline.
  void Drive(const std::function<bool()>& done, Time deadline);

  // Calls that have no answer yet, and what they send.
  void CallBegan(uint64_t bytes);
  void CallsEnded(uint64_t calls, uint64_t bytes);

  // From an event, or where no event runs: QueuePoller's.
  void AtRest(std::function<void()> work) { poller_.AtRest(std::move(work)); }
  void RunAtRest() { poller_.RunAtRest(); }

 private:
  // Runs the next event; false: there was none by the deadline, or the queue is shut down.
  bool RunNext(Time deadline);
  // The driver's own thread.
  void Loop();
  bool TakeInBackground();
  void GiveBack();

  // Has its own synchronisation.
  grpc::CompletionQueue queue_;
  // Of whoever drives.
  QueuePoller poller_{&queue_, true};
  std::atomic<uint64_t> open_calls_{0};
  std::atomic<uint64_t> open_bytes_{0};

  Mutex mutex_;
  CondVar free_;
  CondVar background_;
  bool driven_ GUARDED_BY(mutex_) = false;
  uint32_t waiting_ GUARDED_BY(mutex_) = 0;
  Time given_back_ GUARDED_BY(mutex_){};
  // Whoever drove last had been away for a moment only.
  bool back_soon_ GUARDED_BY(mutex_) = false;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
