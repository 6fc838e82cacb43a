// Serves a worker's completion queue and runs its events, on one thread at a time. That is the
// thread that waits for an answer (Drive), or else a thread of the driver's own.
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

// Thread-safe. All events of the queue are QueueEvents.
class QueueDriver {
 public:
  QueueDriver() = default;
  // The driver was stopped, or never started.
  ~QueueDriver() = default;
  QueueDriver(const QueueDriver&) = delete;

  grpc::CompletionQueue* queue() { return &queue_; }
  // Events are run from now on.
  void Start();
  // Call this when no operation is in progress. Runs the remaining events, and none after that.
  void Stop();
  // Runs events on this thread until `done` or the deadline. `done` is asked after each event.
  void Drive(const std::function<bool()>& done, Time deadline);

  // Counts the calls that have no answer yet, and the bytes that they send.
  void CallBegan(uint64_t bytes);
  void CallsEnded(uint64_t calls, uint64_t bytes);

  // See QueuePoller. Call it from an event, or when no event runs.
  void AtRest(std::function<void()> work) { poller_.AtRest(std::move(work)); }
  void RunAtRest() { poller_.RunAtRest(); }

 private:
  // Runs the next event. False: none came by the deadline, or the queue is shut down.
  bool RunNext(Time deadline);
  // The driver's own thread.
  void Loop();
  bool TakeInBackground();
  void GiveBack();

  // Has its own synchronisation.
  grpc::CompletionQueue queue_;
  // Used by the driving thread.
  QueuePoller poller_{&queue_, true};
  std::atomic<uint64_t> open_calls_{0};
  std::atomic<uint64_t> open_bytes_{0};

  Mutex mutex_;
  CondVar free_;
  CondVar background_;
  bool driven_ GUARDED_BY(mutex_) = false;
  uint32_t waiting_ GUARDED_BY(mutex_) = 0;
  Time given_back_ GUARDED_BY(mutex_){};
  // The last driving thread had been away only for a moment.
  bool back_soon_ GUARDED_BY(mutex_) = false;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
