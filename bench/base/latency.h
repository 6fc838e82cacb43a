// Records how long the calls of a round take.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/base/bench_process.h"
#include "bench/base/percentiles_json.h"
#include "bench/base/statistics.h"
#include "common/clock.h"

namespace leeway {

// Construct this object when the round begins. Not thread-safe.
class LatencyLog {
 public:
  explicit LatencyLog(Duration lasting)
      : began_(std::chrono::steady_clock::now()), deadline_(began_ + lasting), last_(began_) {}

  // Returns true if the round's time is over, so that no more calls should begin. It compares the
  // time at which the last call ended, so it need not read a clock.
  bool over() const { return last_ >= deadline_; }
  // Records a call that began at `began` and has ended now.
  void Add(Time began) {
    last_ = std::chrono::steady_clock::now();
    seconds_.push_back(Seconds(last_ - began));
  }
  uint64_t calls() const { return seconds_.size(); }

  // Returns a client's answer to the director about a round.
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
