// Leased data: the batches that a worker may train on next, and those that it has trained on.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "common/interval_set.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Pure; not thread-safe. A batch is first in the stock, then part of a clock in progress, then
// done. It is forgotten when the coordinator answers the report.
class BatchStock {
 public:
  // How many batches to want at first. The number doubles each time the stock runs out while there
  // are more.
  static constexpr uint64_t kWantMin = 4;
  static constexpr uint64_t kWantMax = 1024;

  // The lowest batch of the stock, for a step of `clock` (which never falls). Nothing if the stock
  // is empty.
  std::optional<uint64_t> Take(uint64_t clock);
  // Contributions of clocks below `clock` count. With `dropped`, later contributions in progress do
  // not count, and their batches go back: a late worker would be late with them again.
  void Settle(uint64_t clock, bool dropped = false);
  // The worker makes at most this number of further steps. It gives back the batches beyond them,
  // and wants no more.
  void SetLeft(uint64_t steps);
  // The stock ran out, and the worker had to wait.
  void RanDry();

  // Fills in what is done and how many batches are wanted. None are wanted while the stock is not
  // low, so that a report takes nothing from the other workers.
  void Ask(v1::LeaseDataRequest& request);
  // The answer to the latest request from Ask().
  void OnReply(const v1::LeaseDataReply& reply);
  // No answer came, so the next request reports the same again.
  void OnFailure();

  // The lowest batches of the stock, at most `most`. Take() gives them next.
  std::vector<uint64_t> First(size_t most) const;

  bool empty() const { return stock_.empty(); }
  // True if the stock is low enough to ask for more.
  bool low() const { return 2 * stock_.size() < filled_; }
  // True if batches were done or given back and not yet reported.
  bool reports() const { return !done_.empty() || gives_back(); }
  bool gives_back() const { return !returned_.empty(); }
  // What the newest answer said.
  bool none_left() const { return none_left_; }
  bool over() const { return over_; }

 private:
  struct Taken {
    uint64_t batch = 0;
    uint64_t clock = 0;
  };

  IntervalSet stock_;
  std::deque<Taken> taken_;
  std::vector<v1::DoneRange> done_;
  IntervalSet returned_;
  // Part of the request in progress.
  std::vector<v1::DoneRange> asked_;
  IntervalSet asked_returned_;
  // The size of the stock after the newest answer.
  uint64_t filled_ = 0;
  uint64_t want_ = kWantMin;
  uint64_t left_ = std::numeric_limits<uint64_t>::max();
  uint64_t asked_want_ = 0;
  bool none_left_ = false;
  bool over_ = false;
};

}  // namespace leeway
