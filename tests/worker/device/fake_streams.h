// The queues of a fake device, and which of them runs when.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "common/philox.h"
#include "worker/compute/backend.h"

namespace leeway::testing {

// Runs queued work on the host's thread, late, and in any order that streams and events allow. The
// order is a function of the seed. Not thread-safe.
class FakeStreams {
 public:
  // The clock by which work takes its emulated time.
  struct Clock {
    std::function<Time()> now;
    // Returns when the clock has reached that time.
    std::function<void(Time)> wait_until;
  };
  // `eagerness`: see below; absent: the seed's. With a clock, work takes its emulated time and
  // nothing is drawn: that is for measurements, not for finding errors.
  FakeStreams(uint64_t seed, std::optional<double> eagerness, std::optional<Clock> clock);

  void Queue(Stream stream, std::function<void()> work, Duration takes = {});
  StreamEvent Record(Stream stream);
  void Wait(Stream stream, StreamEvent event);
  bool IsDone(StreamEvent event) const;
  // Runs some of the work that may run now, or none of it.
  void Advance();
  // Runs until the event is done. False if it never will be.
  bool RunUntil(StreamEvent event);
  // No queued work runs any more, and every event counts as done.
  void Stop();

 private:
  struct Item {
    // Empty: the item records an event, or waits for one.
    std::function<void()> work = {};
    uint64_t records = 0;
    uint64_t waits = 0;
  };
  bool MayRun(const std::deque<Item>& stream) const;
  // Runs one item of a stream that is drawn from those that may run. Returns false if no stream may
  // run.
  bool RunOne();

  RandomStream random_;
  // The share of its chances to run that work takes. It is drawn once, so that with some seeds
  // everything runs at once, and with others nothing runs before the host waits for it.
  const double eagerness_;
  std::array<std::deque<Item>, kStreams> streams_;
  // By event, from 1.
  std::vector<bool> done_ = {true};

  const std::optional<Clock> clock_;
  // By stream: until when it is busy. And by event: when it is done.
  std::array<Time, kStreams> free_{};
  std::vector<Time> ends_ = {Time()};
};

}  // namespace leeway::testing
