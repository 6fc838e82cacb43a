#include "server/rpc/server_queue.h"

#include <algorithm>

#include "server/rpc/server_event.h"

namespace leeway {

ServerQueue::ServerQueue(grpc::ServerBuilder& builder) : queue_(builder.AddCompletionQueue()) {}

ServerQueue::~ServerQueue() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  // One that was never started must still be emptied.
  if (threads_.empty()) Loop();
}

void ServerQueue::Start() {
  const uint32_t threads =
      std::clamp(std::thread::hardware_concurrency(), kThreadsMin, kThreadsMax);
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

void ServerQueue::IfRunning(const std::function<void()>& begin) {
  MutexLock lock(mutex_);
  if (!stopped_) begin();
}

void ServerQueue::Loop() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<ServerEvent*>(tag)->Run(ok);
}

}  // namespace leeway
