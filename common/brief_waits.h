// Decides whether a waiting thread polls or sleeps.
#pragma once

#include "common/clock.h"

namespace leeway {

// The scheduler and the hypervisor wake a sleeping thread tens of microseconds late. A whole small
// exchange takes no longer than that, so polling is faster than sleeping for a short wait. After a
// short wait the next wait begins with polling, because it is probably short, too. After a wait
// that lasted until its deadline, or during which another thread needed the processor, the next
// wait sleeps at once. Pure.
class BriefWaits {
 public:
  // How long to poll: the time of a small exchange in which no thread has to be woken.
  static constexpr Duration kLook = std::chrono::microseconds(50);
  // A wait up to this time is short. It is the time of a small exchange in which a thread at each
  // end has to be woken.
  static constexpr Duration kShort = std::chrono::microseconds(100);
  // One poll takes a microsecond, or tens of microseconds if it reads a message from a socket. If a
  // poll took this long, another thread had the processor meanwhile.
  static constexpr Duration kInterrupted = std::chrono::microseconds(200);
  // The time for which no wait polls after another thread has needed the processor.
  static constexpr Duration kCalm = std::chrono::milliseconds(100);

  bool expected() const { return expected_; }
  // Records one poll.
  void Looked(Time begun, Time ended) {
    if (ended - begun <= kInterrupted) return;
    calm_until_ = ended + kCalm;
    expected_ = false;
  }
  // Records a wait that may have slept. `in_vain` is true if the wait lasted until its deadline.
  void Waited(Time begun, Time ended, bool in_vain) {
    expected_ = !in_vain && ended - begun < kShort && ended >= calm_until_;
  }

 private:
  bool expected_ = false;
  // Other threads need the processor until this time.
  Time calm_until_{};
};

}  // namespace leeway
