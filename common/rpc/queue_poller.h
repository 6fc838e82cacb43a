// Takes events from a completion queue. A single small message has a short delay, and many small
// messages use little processor time.
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
// While messages are small, the poller polls or sleeps as BriefWaits decides. Sending a message
// costs as much as handling many small requests in it. So a sender gathers requests: it postpones
// the sending (AtRest) until no other event is ready. If only one request is in progress, the
// sender sends it at once. Under load, several requests share a message.
class QueuePoller {
 public:
  // The largest payload that counts as small, of one message or of all messages in progress.
  // Gathered requests with this much payload are sent without waiting for more.
  static constexpr uint64_t kSmallBytes = 64 << 10;

  // `alone` is true if no other thread takes events from the queue. If other threads do, the poller
  // does not poll, because one of them already polls the network and this thread would find
  // nothing.
  QueuePoller(grpc::CompletionQueue* queue, bool alone) : queue_(queue), alone_(alone) {}

  // Does the same as CompletionQueue::AsyncNext.
  grpc::CompletionQueue::NextStatus Next(void** tag, bool* ok, gpr_timespec deadline);
  // Sets whether the next event is probably a small message.
  void ExpectSmall(bool small) { small_ = small; }
  // Postpones `work`. Call this function between two calls of Next(). The work runs before the
  // thread next waits, or soon if the thread keeps finding events.
  void AtRest(std::function<void()> work);
  // Runs the postponed work. Call this function before the thread leaves the queue to another
  // thread.
  void RunAtRest();

 private:
  // Polls for a short time. Returns TIMEOUT if no event came while polling was worthwhile.
  grpc::CompletionQueue::NextStatus Look(void** tag, bool* ok, Time begun);

  grpc::CompletionQueue* const queue_;
  const bool alone_;
  bool small_ = false;
  BriefWaits waits_;
  std::vector<std::function<void()>> at_rest_;
  // When the oldest work in `at_rest_` began to wait.
  Time gathers_since_{};
};

}  // namespace leeway
