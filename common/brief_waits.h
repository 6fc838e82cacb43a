// Whether who waits should look again and again, or sleep.
#pragma once

#include "common/clock.h"

namespace leeway {

// Who sleeps is woken late: by a scheduler, on virtual machines by a hypervisor, tens of
// microseconds later, which is what a whole small exchange takes. So where the last wait was short
// the next one is expected to be, and begins by looking. Where that was in vain, or somebody else
// wanted the processor meanwhile, the next one sleeps at once. Pure.
class BriefWaits {
 public:
  // A small exchange without waking anybody: so long one looks.
  static constexpr Duration kLook = std::chrono::microseconds(50);
  // And with waking both sides: a wait up to this is short.
  static constexpr Duration kShort = std::chrono::microseconds(100);
  // One look takes a microsecond, and some tens where it takes a message from a socket; where it
  // took so long, somebody else had the processor in between.
  static constexpr Duration kInterrupted = std::chrono::microseconds(200);
  static constexpr Duration kCalm = std::chrono::milliseconds(100);

  bool expected() const { return expected_; }
  // One look.
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
  // Until then others want the processor.
  Time calm_until_{};
};

}  // namespace leeway
