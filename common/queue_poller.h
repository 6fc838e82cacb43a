// Takes from a completion queue: what small messages need to be quick, and many of them cheap.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <grpcpp/completion_queue.h>

#include "common/clock.h"

namespace leeway {

// For one thread at a time.
//
// Whoever sleeps is woken late: by a scheduler, on virtual machines by a hypervisor, tens of
// microseconds later, which is what a whole small exchange takes. So while messages are small, and
// where the last wait was short, the next one begins by looking again and again for as long; where
// that was in vain, or somebody else wanted the processor meanwhile, the next one sleeps at once.
//
// A message costs as much as many small requests in it. So what can wait for more (AtRest) leaves
// when nothing else is ready: with one request under way at once, under load with what has
// gathered.
class QueuePoller {
 public:
  // Of payload, in a message or under way.
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
  void RunAtRest();

 private:
  grpc::CompletionQueue::NextStatus LookAgain(void** tag, bool* ok, Time begun);

  grpc::CompletionQueue* const queue_;
  const bool alone_;
  bool small_ = false;
  // The last wait was short.
  bool eager_ = false;
  // Until then others want the processor.
  Time calm_until_{};
  std::vector<std::function<void()>> at_rest_;
  // Since when there is something.
  Time gathers_since_{};
};

}  // namespace leeway
