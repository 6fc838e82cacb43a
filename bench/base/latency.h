// How long calls took in a round.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/base/bench_process.h"
#include "bench/base/percentiles_json.h"
#include "bench/base/statistics.h"
#include "common/clock.h"

namespace leeway {

// Begins with the round. Not thread-safe.
class LatencyLog {
 public:
  explicit LatencyLog(Duration lasting)
      : began_(std::chrono::steady_clock::now()), deadline_(began_ + lasting), last_(began_) {}

  // No more calls should begin. Looks at the clock only when a call has ended: a poll costs
  // nothing.
  bool over() const { return last_ >= deadline_; }
  // A call that began at `began` has ended now.
  void Add(Time began) {
    last_ = std::chrono::steady_clock::now();
    seconds_.push_back(Seconds(last_ - began));
  }
  uint64_t calls() const { return seconds_.size(); }

  // What a client tells the director about a round.
  Json Answer(uint64_t messages) const {
    return {{"messages", messages},
            {"seconds", Seconds(last_ - began_)},
            {"latency", PercentilesOf(seconds_)}};
  }

 private:
  const Time began_;
  const Time deadline_;
  Time last_;
  std::vector<double> seconds_;
};

}  // namespace leeway
