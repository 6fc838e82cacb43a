// How many bytes may be on their way to one server. What is on its way cannot be overtaken, so on a
// slow link few should be: then a block that is needed first goes first. Pure: no clock, no I/O.
#pragma once

#include <cstdint>

#include "common/clock.h"

namespace leeway {

// Not thread-safe.
class TransitWindow {
 public:
  // One more message may go: two may always be under way, so that the link never waits for an
  // answer; beyond them what the link moves in about ten milliseconds, by its measured rate.
  bool Admits() const { return messages_ < kMessagesMin || bytes_ < Limit(); }
  void OnSent(uint64_t bytes, Time now);
  // The server has it (or it is lost).
  void OnArrived(uint64_t bytes, Time now);

  // Bytes a second while something was under way; 0 while unknown.
  double rate() const { return busy_seconds_ > 0 ? moved_bytes_ / busy_seconds_ : 0; }

 private:
  static constexpr uint32_t kMessagesMin = 2;
  static constexpr double kQueueSeconds = 0.01;
  // Before the first measurement; and covers loopback at any rate.
  static constexpr double kBytesMax = 16 << 20;
  // The measurement forgets half of what it knows every so many busy seconds.
  static constexpr double kMemorySeconds = 0.5;

  double Limit() const;

  uint32_t messages_ = 0;
  uint64_t bytes_ = 0;
  Time last_{};
  double moved_bytes_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace leeway
