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
  // How many batches to request at first. The number doubles, up to kWantMax, each time the stock
  // runs out while the coordinator has more.
  static constexpr uint64_t kWantMin = 4;
  static constexpr uint64_t kWantMax = 1024;

  // Takes the lowest batch of the stock, for a step of `clock` (which never falls). Returns nothing
  // if the stock is empty.
  std::optional<uint64_t> Take(uint64_t clock);
  // Notes that contributions of clocks below `clock` count. With `dropped`, later contributions in
  // progress do not count, and their batches go back to the coordinator, because a late worker
  // would be late with them again.
  void Settle(uint64_t clock, bool dropped = false);
  // Limits the stock to this number of further steps. Batches beyond it go back to the coordinator,
  // and no more are requested.
  void SetLeft(uint64_t steps);
  // Call this when the stock ran out and the worker had to wait.
  void RanDry();

  // Fills in which batches are done and how many are wanted. No batches are wanted while the stock
  // is not low, so that a mere report takes no batches from the other workers.
  void Ask(v1::LeaseDataRequest& request);
  // Handles the answer to the latest request from Ask().
  void OnReply(const v1::LeaseDataReply& reply);
  // Call this if no answer came. The next request then reports the same again.
  void OnFailure();

  // Returns at most `most` of the lowest batches of the stock, which Take() returns next.
  std::vector<uint64_t> First(size_t most) const;

  bool empty() const { return stock_.empty(); }
  // Returns true if the stock is low enough to ask for more.
  bool low() const { return 2 * stock_.size() < filled_; }
  // Returns true if batches were done or given back and not yet reported.
  bool reports() const { return !done_.empty() || gives_back(); }
  bool gives_back() const { return !returned_.empty(); }
  // What the newest answer reported.
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
  // The reports in the request that is in progress.
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
