// The completion queue that all of a server's calls are on, and the threads that take from it. A
// thread that finds something on the network carries it out itself, while another one takes its
// place at the network: no event goes from thread to thread. That is why there is but one queue,
// and nothing else in the process waits on the network.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>

#include "common/mutex.h"

namespace leeway {

class ServerQueue {
 public:
  // Something that may begin operations on the queue, for as long as this lives: the queue waits
  // with stopping until there is nobody left, half a minute at most. (gRPC aborts the process of
  // who begins something on a queue that was shut down.)
  class Guest {
   public:
    explicit Guest(ServerQueue* queue) : queue_(queue) { queue_->Enter(); }
    ~Guest() { queue_->Leave(); }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

   private:
    ServerQueue* const queue_;
  };

  // `threads` take from it.
  explicit ServerQueue(grpc::ServerBuilder& builder, uint32_t threads = ThreadsHere());
  // After the gRPC server was shut down, which ends all calls, before it is gone: what the queue
  // still holds refers to it.
  ~ServerQueue();

  // Once the gRPC server has been started, and calls are awaited.
  void Start();

  grpc::ServerCompletionQueue* get() const { return queue_.get(); }
  // Runs `begin`, which awaits another call, unless the queue stops.
  void IfRunning(const std::function<void()>& begin);
  // On a thread that takes from the queue: `work` runs when nothing else is ready (QueuePoller).
  // False: on another one, where it is to be run at once.
  static bool AtRest(std::function<void()> work);
  // On such a thread, too: a message with so much payload has come, and the next is likely such a
  // one (QueuePoller). On another one nothing follows from it.
  static void Took(uint64_t bytes);
  // Runs `run` for 0 to `parts` - 1, on this thread and, between what else they find, on those that
  // take from the queue, and returns when all have run.
  void Share(uint64_t parts, const std::function<void(uint64_t)>& run);
  // Runs `work`, which may take long (files), in order, on a thread of its own; what is left when
  // the queue goes is still run.
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
  const uint32_t thread_count_;
  // Of who starts and ends the queue.
  std::vector<std::thread> threads_;
  Mutex mutex_;
  // No more calls are awaited.
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
