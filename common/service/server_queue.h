// The completion queue of all calls of a server, and the threads that take events from it. The
// thread that receives an event from the network handles it, while another thread waits for the
// next event. So no event is passed from thread to thread. For this reason there is only one queue,
// and nothing else in the process waits for the network.
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
  // An object that may begin operations on the queue holds a Guest. Before the queue stops, the
  // queue waits until no guest is left, for half a minute at most. This is necessary because gRPC
  // aborts a process that begins an operation on a queue that was shut down.
  class Guest {
   public:
    explicit Guest(ServerQueue* queue) : queue_(queue) { queue_->Enter(); }
    ~Guest() { queue_->Leave(); }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

   private:
    ServerQueue* const queue_;
  };

  // `doorkeeper` admits the calls. It must outlive the queue. If it is null, all calls are
  // admitted.
  explicit ServerQueue(grpc::ServerBuilder& builder, Doorkeeper* doorkeeper = nullptr)
      : ServerQueue(builder, doorkeeper, ThreadsHere()) {}
  // `threads` is the number of threads that take events from the queue.
  ServerQueue(grpc::ServerBuilder& builder, Doorkeeper* doorkeeper, uint32_t threads);
  // Shut the gRPC server down first, which ends all calls. Then destroy the queue, and only then
  // the server, because events in the queue still refer to the server.
  ~ServerQueue();

  // Starts the threads. Call this function when the gRPC server has started and calls are accepted.
  void Start();

  grpc::ServerCompletionQueue* get() const { return queue_.get(); }
  // Decides whether a call is admitted, before its message is read. Returns the caller, or the
  // error with which to answer the call.
  absl::StatusOr<Caller> Admit(const grpc::ServerContext& context, const CalledMethod& method) {
    return doorkeeper_ == nullptr ? Caller() : doorkeeper_->Admit(context, method);
  }
  // Runs `begin`, which accepts another call, unless the queue stops.
  void IfRunning(const std::function<void()>& begin);
  // On a thread that takes events from the queue, postpones `work` until no other event is ready
  // (QueuePoller), and returns true. On another thread, returns false, and the caller must run the
  // work itself, at once.
  static bool AtRest(std::function<void()> work);
  // On a thread that takes events from the queue, records that a message with this number of
  // payload bytes has come, because the next message is probably similar (QueuePoller). On another
  // thread, does nothing.
  static void Took(uint64_t bytes);
  // Calls `run` with each number from 0 to `parts` - 1, and returns when all calls have returned.
  // The calls run on this thread and, between other events, on the threads that take events from
  // the queue.
  void Share(uint64_t parts, const std::function<void(uint64_t)>& run);
  // Runs `work`, which may be slow (it may write a file), on a separate thread. The thread runs all
  // such work in the order of the calls. Work that is left when the queue ends is still run.
  void Later(std::function<void()> work);

 private:
  class Helper;

  // Returns the number of threads, which is half of the number of processors. On two processors and
  // with one thread, the pushes of one worker reach 0.8 of the rate of raw TCP. With two or four
  // threads they reach 0.65, because the threads wake each other in turn.
  static uint32_t ThreadsHere();
  void Enter();
  void Leave();
  void WaitForGuests();
  // Takes events from the queue until it stops. `alone` is true if this is the only thread.
  void Loop(bool alone);
  void RunLater();

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  Doorkeeper* const doorkeeper_;
  const uint32_t thread_count_;
  // Only the thread that starts and ends the queue uses this field.
  std::vector<std::thread> threads_;
  Mutex mutex_;
  // Whether the queue no longer accepts calls.
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
