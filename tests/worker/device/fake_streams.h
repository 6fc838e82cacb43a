// The queues of a fake device, and who of them runs when.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "common/philox.h"
#include "worker/compute/backend.h"

namespace leeway::testing {

// Runs what is queued on the host's thread, late, and in any order that streams and events allow: a
// function of the seed. Not thread-safe.
class FakeStreams {
 public:
  // `eagerness`: see below; nothing: the seed's.
  FakeStreams(uint64_t seed, std::optional<double> eagerness);

  void Queue(Stream stream, std::function<void()> work);
  StreamEvent Record(Stream stream);
  void Wait(Stream stream, StreamEvent event);
  bool IsDone(StreamEvent event) const { return event.number == 0 || done_[event.number]; }
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
};

}  // namespace leeway::testing
