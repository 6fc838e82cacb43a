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
  explicit ServerQueue(grpc::ServerBuilder& builder);
  // After the gRPC server was shut down, before it is gone: what the queue still holds refers to
  // it.
  ~ServerQueue();

  // Once the gRPC server has been started, and calls are awaited.
  void Start();

  grpc::ServerCompletionQueue* get() const { return queue_.get(); }
  // Runs `begin`, which begins something on the queue, unless that has stopped.
  void IfRunning(const std::function<void()>& begin);
  // Runs `work`, which may take long (files), in order, on a thread of its own; what is left when
  // the queue goes is still run.
  void Later(std::function<void()> work);

 private:
  // Half of the processors: on two, one worker's pushes reach 0.8 of raw TCP with one thread and
  // 0.65 with two or four, which take turns by waking each other.
  static constexpr uint32_t kThreadsMax = 16;

  void Loop();
  void RunLater();

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> threads_;
  Mutex mutex_;
  // Nothing may be begun on the queue any more.
  bool stopped_ GUARDED_BY(mutex_) = false;

  Mutex later_mutex_;
  CondVar later_changed_;
  std::deque<std::function<void()>> later_ GUARDED_BY(later_mutex_);
  bool later_ends_ GUARDED_BY(later_mutex_) = false;
  std::thread later_thread_;
};

}  // namespace leeway
