// Limits the bytes in flight to one server. No block can overtake data that is in flight. So on a
// slow link few bytes may be in flight. Otherwise the block that is needed first would wait behind
// other blocks. Pure: no clock, no I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace leeway {

// Not thread-safe.
class TransitWindow {
 public:
  // Returns true if one more message may be sent. Two messages may always be in flight, so that the
  // link never waits for an answer. Beyond two messages, the bytes in flight are limited to what
  // the link moves, at its measured rate, in a certain time. This time is ten milliseconds, or 1.25
  // times the shortest time of a message if that is longer. So a long link is full before the first
  // answer is back. While the link is not full, the limit grows.
  bool Admits() const { return messages_ < kMessagesMin || bytes_ < Limit(); }
  // Returns how many messages of the largest size fill the link, as far as is known. With fewer
  // messages in flight the link is sometimes idle.
  uint32_t Filling() const;
  void OnSent(uint64_t bytes, Time now);
  // Notes that a message of this size, sent at `sent`, has arrived at the server.
  void OnArrived(uint64_t bytes, Time sent, Time now);
  // Notes that a message is not in flight any more. When it arrived, or whether it did, is unknown.
  void OnLost(uint64_t bytes, Time now);
  // Forgets the measurements, but not the messages in flight. Call this when the server has moved.
  void Forget();

  // The link's bytes a second, measured while something was in flight. 0 while it is unknown.
  double rate() const { return busy_seconds_ > 0 ? moved_bytes_ / busy_seconds_ : 0; }

 private:
  static constexpr uint32_t kMessagesMin = 2;
  static constexpr double kQueueSeconds = 0.01;
  static constexpr double kOfShortest = 1.25;
  // The limit in bytes before the first measurement. It suffices for loopback at any rate.
  static constexpr double kBytesMax = 16 << 20;
  // Whenever the busy seconds exceed this number, the weight of the old measurements is halved.
  static constexpr double kMemorySeconds = 0.5;

  static constexpr double kFillingMax = 256;

  double Limit() const;
  // Returns the number of bytes that fill the link.
  double Fill() const;

  uint32_t messages_ = 0;
  uint64_t bytes_ = 0;
  uint64_t largest_bytes_ = 0;
  Time last_{};
  double moved_bytes_ = 0;
  double busy_seconds_ = 0;
  // The size of the messages by which shortest_seconds_ was measured. A smaller message takes less
  // time on the link and would make the window too small. The measurement does not expire: on a
  // link that is always full, a later measurement would include the waiting time that this window
  // itself causes.
  uint64_t measured_bytes_ = 0;
  std::optional<double> shortest_seconds_;
};

}  // namespace leeway
