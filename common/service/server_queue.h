// The completion queue of all of a server's calls, and the threads that take from it. A thread that
// finds an event on the network carries it out itself, while another thread takes its place at the
// network. So no event goes from thread to thread. That is why there is only one queue, and nothing
// else in the process waits on the network.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>

#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/service/doorkeeper.h"

namespace leeway {

class ServerQueue {
 public:
  // Held by everything that may begin operations on the queue. Before it stops, the queue waits
  // until nobody holds one, half a minute at most. (gRPC aborts a process that begins an operation
  // on a queue that was shut down.)
  class Guest {
   public:
    explicit Guest(ServerQueue* queue) : queue_(queue) { queue_->Enter(); }
    ~Guest() { queue_->Leave(); }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

   private:
    ServerQueue* const queue_;
  };

  // `doorkeeper` lets its calls in, and outlives it; null: everybody's.
  explicit ServerQueue(grpc::ServerBuilder& builder, Doorkeeper* doorkeeper = nullptr)
      : ServerQueue(builder, doorkeeper, ThreadsHere()) {}
  // `threads` take from it.
  ServerQueue(grpc::ServerBuilder& builder, Doorkeeper* doorkeeper, uint32_t threads);
  // Call it after the gRPC server was shut down, which ends all calls, but before it is destroyed:
  // events in the queue still refer to it.
  ~ServerQueue();

  // Call it once the gRPC server has started and calls are accepted.
  void Start();

  grpc::ServerCompletionQueue* get() const { return queue_.get(); }
  // Before a call is looked at any further. An error is its answer.
  absl::StatusOr<Caller> Admit(const grpc::ServerContext& context, const CalledMethod& method) {
    return doorkeeper_ == nullptr ? Caller() : doorkeeper_->Admit(context, method);
  }
  // Runs `begin`, which accepts another call, unless the queue stops.
  void IfRunning(const std::function<void()>& begin);
  // On a thread that takes from the queue, `work` runs when nothing else is ready (QueuePoller). On
  // another thread returns false: the caller must run it at once.
  static bool AtRest(std::function<void()> work);
  // Says on such a thread that a message with this much payload has come, so the next is likely to
  // be alike (QueuePoller). Does nothing on another thread.
  static void Took(uint64_t bytes);
  // Runs `run` for 0 to `parts` - 1, on this thread and, between what else they find, on those that
  // take from the queue, and returns when all have run.
  void Share(uint64_t parts, const std::function<void(uint64_t)>& run);
  // Runs `work`, which may take long (files), in order, on a thread of its own. Work that is left
  // when the queue ends is still run.
  void Later(std::function<void()> work);

 private:
  class Helper;

  // Half of the processors: on two, one worker's pushes reach 0.8 of raw TCP with one thread and
  // 0.65 with two or four, which take turns by waking each other.
  static uint32_t ThreadsHere();
  void Enter();
  void Leave();
  void WaitForGuests();
  // `alone`: it is the only one.
  void Loop(bool alone);
  void RunLater();

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  Doorkeeper* const doorkeeper_;
  const uint32_t thread_count_;
  // Used only by the thread that starts and ends the queue.
  std::vector<std::thread> threads_;
  Mutex mutex_;
  // No more calls are accepted.
  bool stopped_ GUARDED_BY(mutex_) = false;

  Mutex guests_mutex_;
  CondVar guest_left_;
  uint64_t guests_ GUARDED_BY(guests_mutex_) = 0;

  Mutex later_mutex_;
  CondVar later_changed_;
  std::deque<std::function<void()>> later_ GUARDED_BY(later_mutex_);
  bool later_ends_ GUARDED_BY(later_mutex_) = false;
  std::thread later_thread_;
};

}  // namespace leeway
