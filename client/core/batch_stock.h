// For leased data: the batches that a worker may train on next, and those that it has trained on.
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
// done. When the coordinator has answered the report of a done batch, this object forgets the
// batch.
class BatchStock {
 public:
  // The number of batches to request at first. It doubles, up to kWantMax, each time the stock runs
  // out while the coordinator has more batches.
  static constexpr uint64_t kWantMin = 4;
  static constexpr uint64_t kWantMax = 1024;

  // Takes the lowest batch of the stock, for a step of `clock` (which never falls). Returns nothing
  // if the stock is empty.
  std::optional<uint64_t> Take(uint64_t clock);
  // Notes that the contributions of clocks below `clock` count. If `dropped` is true, later
  // contributions in progress do not count. Their batches go back to the coordinator, because a
  // worker that was late would be late with them again.
  void Settle(uint64_t clock, bool dropped = false);
  // Limits the stock to the batches of this number of further steps. The rest go back to the
  // coordinator, and no further batches are requested.
  void SetLeft(uint64_t steps);
  // Notes that the stock ran out, so that the worker had to wait.
  void RanDry();

  // Fills in which batches are done, and how many batches the worker wants. The worker wants
  // batches only when the stock is low, so that a mere report takes no batches from other workers.
  void Ask(v1::LeaseDataRequest& request);
  // Handles the answer to the latest request from Ask().
  void OnReply(const v1::LeaseDataReply& reply);
  // Notes that no answer came. The next request then reports the same again.
  void OnFailure();

  // Returns at most `most` of the lowest batches of the stock, which Take() returns next.
  std::vector<uint64_t> First(size_t most) const;

  bool empty() const { return stock_.empty(); }
  // Returns true if the stock is low enough to ask for more.
  bool low() const { return 2 * stock_.size() < filled_; }
  // Returns true if batches are done or go back, and the coordinator has not been told.
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
