// Takes from a completion queue: what small messages need to be quick, and many of them cheap.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <grpcpp/completion_queue.h>

#include "common/brief_waits.h"
#include "common/clock.h"

namespace leeway {

// For one thread at a time.
//
// While messages are small it waits as BriefWaits says. And a message costs as much as many small
// requests in it: so what can wait for more (AtRest) leaves when nothing else is ready, with one
// request under way at once, under load with what has gathered.
class QueuePoller {
 public:
  // Payload of a small message, or of all that is under way. What has gathered so much waits for no
  // more.
  static constexpr uint64_t kSmallBytes = 64 << 10;

  // `alone`: no other thread takes from the queue meanwhile. Else whoever has the network does not
  // let go of it, and looking again finds nothing.
  QueuePoller(grpc::CompletionQueue* queue, bool alone) : queue_(queue), alone_(alone) {}

  // As CompletionQueue::AsyncNext.
  grpc::CompletionQueue::NextStatus Next(void** tag, bool* ok, gpr_timespec deadline);
  // What comes next is likely small.
  void ExpectSmall(bool small) { small_ = small; }
  // To be called by what runs between two Next(): `work` runs before the thread waits, and soon
  // where it does not.
  void AtRest(std::function<void()> work);
  // Runs what is put off: before the thread leaves the queue to another one.
  void RunAtRest();

 private:
  // TIMEOUT: nothing came while it was worth looking.
  grpc::CompletionQueue::NextStatus Look(void** tag, bool* ok, Time begun);

  grpc::CompletionQueue* const queue_;
  const bool alone_;
  bool small_ = false;
  BriefWaits waits_;
  std::vector<std::function<void()>> at_rest_;
  // Since when there is something.
  Time gathers_since_{};
};

}  // namespace leeway
