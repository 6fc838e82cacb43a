// Limits the bytes in flight to one server. Data in flight cannot be overtaken. So on a slow link
// the window should be small: then a block that is needed first goes first. Pure: no clock, no I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace leeway {

// Not thread-safe.
class TransitWindow {
 public:
  // True if one more message may go. Two messages may always be in flight, so that the link never
  // waits for an answer. Beyond those, the limit is what the link moves, at its measured rate, in
  // ten milliseconds, or in 1.25 times the shortest time that a message has taken, if that is
  // longer. This fills a long link before the first answer is back. While the link is not full, the
  // limit grows.
  bool Admits() const { return messages_ < kMessagesMin || bytes_ < Limit(); }
  // The number of messages like the largest one that fill the link, as far as is known. Fewer leave
  // it idle.
  uint32_t Filling() const;
  void OnSent(uint64_t bytes, Time now);
  // The server has received what was sent at `sent`.
  void OnArrived(uint64_t bytes, Time sent, Time now);
  // The message is not in flight any more, and its time says nothing.
  void OnLost(uint64_t bytes, Time now);
  // The server has moved: forgets what was measured. What is in flight stays.
  void Forget();

  // Bytes a second while something was in flight. 0 while unknown.
  double rate() const { return busy_seconds_ > 0 ? moved_bytes_ / busy_seconds_ : 0; }

 private:
  static constexpr uint32_t kMessagesMin = 2;
  static constexpr double kQueueSeconds = 0.01;
  static constexpr double kOfShortest = 1.25;
  // The limit before the first measurement. It suffices for loopback at any rate.
  static constexpr double kBytesMax = 16 << 20;
  // The measurement forgets half of what it knows after this many busy seconds.
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
  // Measured on messages of about this size. A short message takes less of the link, and would say
  // that fewer bytes fill it. This is not forgotten with time: on a link that is always full, a
  // later measurement would contain the queue that an earlier one has allowed.
  uint64_t measured_bytes_ = 0;
  std::optional<double> shortest_seconds_;
};

}  // namespace leeway
