// Runs the events of a worker's completion queue, on one thread at a time: on a thread that waits
// for an answer (Drive), or on the driver's own thread if no thread waits.
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
  // Stop() must have been called, unless the driver was never started.
  ~QueueDriver() = default;
  QueueDriver(const QueueDriver&) = delete;

  grpc::CompletionQueue* queue() { return &queue_; }
  // Starts the driver's own thread.
  void Start();
  // Runs the remaining events, and ends the driver. Call this when no operation is in progress.
  void Stop();
  // Runs events on this thread until `done` returns true or the deadline comes. Calls `done` after
  // each event.
  void Drive(const std::function<bool()>& done, Time deadline);

  // Counts the calls that have no answer yet, and the bytes that they send.
  void CallBegan(uint64_t bytes);
  void CallsEnded(uint64_t calls, uint64_t bytes);

  // See QueuePoller. Call these from an event, or when no event runs.
  void AtRest(std::function<void()> work) { poller_.AtRest(std::move(work)); }
  void RunAtRest() { poller_.RunAtRest(); }

 private:
  // Runs the next event. Returns false if no event came by the deadline, or if the queue is shut
  // down.
  bool RunNext(Time deadline);
  // The driver's own thread.
  void Loop();
  bool TakeInBackground();
  void GiveBack();

  // Has its own synchronisation.
  grpc::CompletionQueue queue_;
  // Only the driving thread uses the poller.
  QueuePoller poller_{&queue_, true};
  std::atomic<uint64_t> open_calls_{0};
  std::atomic<uint64_t> open_bytes_{0};

  Mutex mutex_;
  CondVar free_;
  CondVar background_;
  bool driven_ GUARDED_BY(mutex_) = false;
  uint32_t waiting_ GUARDED_BY(mutex_) = 0;
  Time given_back_ GUARDED_BY(mutex_){};
  // True if the last driving thread came back after a short break, so that it will probably drive
  // again soon.
  bool back_soon_ GUARDED_BY(mutex_) = false;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
