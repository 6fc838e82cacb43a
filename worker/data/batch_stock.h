// Leased data: the batches that a worker may train on next, and those that it has trained on.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/interval_set.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Pure; not thread-safe. A batch is in the stock, then part of a clock that is under way, then
// done, and with the coordinator's answer to the report forgotten.
class BatchStock {
 public:
  // Wants so many at first; twice as many each time that the stock ran out while there was more.
  static constexpr uint64_t kWantMin = 4;
  static constexpr uint64_t kWantMax = 1024;

  // The lowest of the stock, for a step of `clock` (never falls). Nothing: the stock is empty.
  std::optional<uint64_t> Take(uint64_t clock);
  // Contributions of clocks below `clock` count; those of later ones that are under way do not, if
  // `dropped`: their batches are to be trained on again.
  void Settle(uint64_t clock, bool dropped = false);
  // It ran out, and the worker had to wait.
  void RanDry();

  // Fills in what is done and how many are wanted: none as long as the stock is not low, so that a
  // report takes nothing from the others.
  void Ask(v1::LeaseDataRequest& request);
  // The answer to what Ask() gave last.
  void OnReply(const v1::LeaseDataReply& reply);
  // There was no answer: the same is reported again.
  void OnFailure();

  bool empty() const { return stock_.empty(); }
  // So few are left that more should be asked for.
  bool low() const { return 2 * stock_.size() < filled_; }
  // Done, and not yet reported.
  bool reports() const { return !done_.empty(); }
  // As the newest answer said.
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
  // In the request under way.
  std::vector<v1::DoneRange> asked_;
  // The stock after the newest answer.
  uint64_t filled_ = 0;
  uint64_t want_ = kWantMin;
  uint64_t asked_want_ = 0;
  bool none_left_ = false;
  bool over_ = false;
};

}  // namespace leeway
