// The completion queue of all calls of a server, and the threads that take events from it. The
// thread that finds an event on the network handles it, while another thread takes its place at the
// network. So no event is passed from thread to thread. That is why there is only one queue, and
// why nothing else in the process waits on the network.
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
  // until no guest is left, for half a minute at most. (gRPC aborts a process that begins an
  // operation on a queue that was shut down.)
  class Guest {
   public:
    explicit Guest(ServerQueue* queue) : queue_(queue) { queue_->Enter(); }
    ~Guest() { queue_->Leave(); }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

   private:
    ServerQueue* const queue_;
  };

  // `doorkeeper` admits the calls, and outlives the queue. Null: all calls are admitted.
  explicit ServerQueue(grpc::ServerBuilder& builder, Doorkeeper* doorkeeper = nullptr)
      : ServerQueue(builder, doorkeeper, ThreadsHere()) {}
  // `threads` threads take events from the queue.
  ServerQueue(grpc::ServerBuilder& builder, Doorkeeper* doorkeeper, uint32_t threads);
  // To be called after the gRPC server was shut down, which ends all calls, but before it is
  // destroyed, because events in the queue still refer to it.
  ~ServerQueue();

  // To be called once the gRPC server has started and calls are accepted.
  void Start();

  grpc::ServerCompletionQueue* get() const { return queue_.get(); }
  // To be called before a call is processed any further. An error is the call's answer.
  absl::StatusOr<Caller> Admit(const grpc::ServerContext& context, const CalledMethod& method) {
    return doorkeeper_ == nullptr ? Caller() : doorkeeper_->Admit(context, method);
  }
  // Runs `begin`, which accepts another call, unless the queue stops.
  void IfRunning(const std::function<void()>& begin);
  // On a thread that takes events from the queue: runs `work` when no other event is ready
  // (QueuePoller). On another thread: returns false, and the caller must run it at once.
  static bool AtRest(std::function<void()> work);
  // On such a thread: says that a message with this number of payload bytes has come, so the next
  // one is probably similar (QueuePoller). On another thread it does nothing.
  static void Took(uint64_t bytes);
  // Calls `run` for 0 to `parts` - 1, and returns when all calls have returned. They run on this
  // thread and, between other events, on the threads that take events from the queue.
  void Share(uint64_t parts, const std::function<void(uint64_t)>& run);
  // Runs `work`, which may take long (files), on a thread of its own, in the order of the calls.
  // Work that is left when the queue ends is still run.
  void Later(std::function<void()> work);

 private:
  class Helper;

  // Half of the processors. On two processors the pushes of one worker reach 0.8 of raw TCP with
  // one thread. With two or four threads, which wake each other in turn, they reach 0.65.
  static uint32_t ThreadsHere();
  void Enter();
  void Leave();
  void WaitForGuests();
  // `alone`: this is the only thread.
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
