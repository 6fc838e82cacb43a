// Whether a waiting thread should poll or sleep.
#pragma once

#include "common/clock.h"

namespace leeway {

// A sleeping thread is woken late by the scheduler, and on virtual machines by the hypervisor: tens
// of microseconds, as long as a whole small exchange takes. So after a short wait the next one is
// expected to be short, too, and begins by polling. If that was in vain, or another thread needed
// the processor meanwhile, the next wait sleeps at once. Pure.
class BriefWaits {
 public:
  // How long to poll: as long as a small exchange takes that wakes nobody.
  static constexpr Duration kLook = std::chrono::microseconds(50);
  // A wait up to this is short: as long as a small exchange takes that wakes both sides.
  static constexpr Duration kShort = std::chrono::microseconds(100);
  // One poll takes a microsecond, or some tens if it takes a message from a socket. If one took
  // this long, another thread had the processor in between.
  static constexpr Duration kInterrupted = std::chrono::microseconds(200);
  static constexpr Duration kCalm = std::chrono::milliseconds(100);

  bool expected() const { return expected_; }
  // One poll.
  void Looked(Time begun, Time ended) {
    if (ended - begun <= kInterrupted) return;
    calm_until_ = ended + kCalm;
    expected_ = false;
  }
  // A wait that may have slept; `in_vain`: until its deadline.
  void Waited(Time begun, Time ended, bool in_vain) {
    expected_ = !in_vain && ended - begun < kShort && ended >= calm_until_;
  }

 private:
  bool expected_ = false;
  // Others need the processor until then.
  Time calm_until_{};
};

}  // namespace leeway
