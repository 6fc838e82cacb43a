// Takes events from a completion queue so that single small messages are quick, and many are cheap.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <grpcpp/completion_queue.h>

#include "common/brief_waits.h"
#include "common/clock.h"

namespace leeway {

// Used by one thread at a time.
//
// While messages are small, the poller waits as BriefWaits says. A message costs as much as many
// small requests within it. So work that can gather more (AtRest) runs when nothing else is ready:
// at once if one request is under way, and with several gathered requests under load.
class QueuePoller {
 public:
  // The payload of a small message, or of all messages under way. Gathered work of this size does
  // not wait for more.
  static constexpr uint64_t kSmallBytes = 64 << 10;

  // `alone`: no other thread takes events from the queue meanwhile. If others do, the thread that
  // polls the network keeps it, and polling here finds nothing.
  QueuePoller(grpc::CompletionQueue* queue, bool alone) : queue_(queue), alone_(alone) {}

  // As CompletionQueue::AsyncNext.
  grpc::CompletionQueue::NextStatus Next(void** tag, bool* ok, gpr_timespec deadline);
  // Says whether the next event is likely small.
  void ExpectSmall(bool small) { small_ = small; }
  // Code that runs between two calls of Next() puts off `work` with this. The work runs before the
  // thread waits, or soon if the thread does not wait.
  void AtRest(std::function<void()> work);
  // Runs the work that was put off. Call it before the thread leaves the queue to another thread.
  void RunAtRest();

 private:
  // Polls for a short time. TIMEOUT: nothing came while polling was worthwhile.
  grpc::CompletionQueue::NextStatus Look(void** tag, bool* ok, Time begun);

  grpc::CompletionQueue* const queue_;
  const bool alone_;
  bool small_ = false;
  BriefWaits waits_;
  std::vector<std::function<void()>> at_rest_;
  // Since when the oldest work in `at_rest_` waits.
  Time gathers_since_{};
};

}  // namespace leeway
