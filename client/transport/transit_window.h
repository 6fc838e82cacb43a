// How many bytes may be on their way to one server. What is on its way cannot be overtaken, so on a
// slow link few should be: then a block that is needed first goes first. Pure: no clock, no I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace leeway {

// Not thread-safe.
class TransitWindow {
 public:
  // One more message may go: two may always be under way, so that the link never waits for an
  // answer; beyond them what the link moves, by its measured rate, in about ten milliseconds, or in
  // the shortest time that a message has taken and a quarter, where that is longer: so much fills a
  // long link before the first answer is back, and while it is not full it becomes more.
  bool Admits() const { return messages_ < kMessagesMin || bytes_ < Limit(); }
  // Messages like the largest one that fill the link, as far as is known: fewer leave it idle.
  uint32_t Filling() const;
  void OnSent(uint64_t bytes, Time now);
  // The server has what was sent then.
  void OnArrived(uint64_t bytes, Time sent, Time now);
  // It is not under way any more, and how long it took says nothing.
  void OnLost(uint64_t bytes, Time now);
  // The server is elsewhere from now on: what was measured does not count. What is under way stays.
  void Forget();

  // Bytes a second while something was under way; 0 while unknown.
  double rate() const { return busy_seconds_ > 0 ? moved_bytes_ / busy_seconds_ : 0; }

 private:
  static constexpr uint32_t kMessagesMin = 2;
  static constexpr double kQueueSeconds = 0.01;
  static constexpr double kOfShortest = 1.25;
  // Before the first measurement; and covers loopback at any rate.
  static constexpr double kBytesMax = 16 << 20;
  // The measurement forgets half of what it knows every so many busy seconds.
  static constexpr double kMemorySeconds = 0.5;

  static constexpr double kFillingMax = 256;

  double Limit() const;
  // Bytes that fill the link.
  double Fill() const;

  uint32_t messages_ = 0;
  uint64_t bytes_ = 0;
  uint64_t largest_bytes_ = 0;
  Time last_{};
  double moved_bytes_ = 0;
  double busy_seconds_ = 0;
  // Of messages of about this size: a short one takes less of the link, and would say that fewer
  // fill it. Not forgotten with time: on a link that is always full a later measurement would
  // contain the queue that an earlier one has allowed.
  uint64_t measured_bytes_ = 0;
  std::optional<double> shortest_seconds_;
};

}  // namespace leeway
