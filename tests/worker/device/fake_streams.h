// The queues of a fake device, and who of them runs when.
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

// Runs what is queued on the host's thread, late, and in any order that streams and events allow: a
// function of the seed. Not thread-safe.
class FakeStreams {
 public:
  // By which work takes the time that it is said to take.
  struct Clock {
    std::function<Time()> now;
    // Returns at that time.
    std::function<void(Time)> wait_until;
  };
  // `eagerness`: see below; nothing: the seed's. With a clock work takes its time, and nothing is
  // drawn: for measuring, not for finding.
  FakeStreams(uint64_t seed, std::optional<double> eagerness, std::optional<Clock> clock);

  void Queue(Stream stream, std::function<void()> work, Duration takes = {});
  StreamEvent Record(Stream stream);
  void Wait(Stream stream, StreamEvent event);
  bool IsDone(StreamEvent event) const;
  // Some of what may run now runs, or nothing.
  void Advance();
  // Runs until the event is done. False if it never will be.
  bool RunUntil(StreamEvent event);
  // Nothing that is queued runs any more, and every event counts as done.
  void Stop();

 private:
  struct Item {
    // Empty: an event is recorded here, or waited for.
    std::function<void()> work = {};
    uint64_t records = 0;
    uint64_t waits = 0;
  };
  bool MayRun(const std::deque<Item>& stream) const;
  // One item of a stream drawn from those that may run; false if there is none.
  bool RunOne();

  RandomStream random_;
  // Of the chances that it has, how many a stream's work takes: drawn once, so that some seeds have
  // everything at once, and some nothing before it is waited for.
  const double eagerness_;
  std::array<std::deque<Item>, kStreams> streams_;
  // By event, from 1.
  std::vector<bool> done_ = {true};

  const std::optional<Clock> clock_;
  // By stream: until when it is at work. And by event: when it is done.
  std::array<Time, kStreams> free_{};
  std::vector<Time> ends_ = {Time()};
};

}  // namespace leeway::testing
