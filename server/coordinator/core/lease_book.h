// Leased data: which batches of the epochs are free, whose, or done. Batches are numbered through
// all epochs, in the order in which they are given out; what a lost worker has not done is given
// out again before anything else.
//
// Promised: every batch below the lowest one that is not done has been part of a contribution that
// counts. Of twice: what a worker had contributed and not reported when it was lost, and what it
// does before it hears that it was taken for lost.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/interval_set.h"
#include "leeway/v1/checkpoint.pb.h"

namespace leeway {

// Pure; not thread-safe.
class LeaseBook {
 public:
  static constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max();
  // Far above any data set; keeps sums of batches from overflowing.
  static constexpr uint64_t kBatchMax = uint64_t{1} << 60;
  // That one worker holds beside those of clocks that are under way.
  static constexpr uint64_t kStockMax = 4096;
  // Reports that are told apart while no cut becomes durable.
  static constexpr size_t kRecentMax = 1 << 16;

  struct Rules {
    // At least 1.
    uint64_t batches_per_epoch = 1;
    // Of the whole job.
    uint64_t batches = kEndless;
    // That a worker's clocks under way may be made of.
    uint64_t under_way = 1;
  };
  explicit LeaseBook(const Rules& rules) : rules_(rules) {}

  // Nothing is done, and nobody holds anything.
  void Reset();
  // Everything is as a cut says: nobody holds anything. FAILED_PRECONDITION for a cut of data with
  // another number of batches in a pass; DATA_LOSS, naming the field, for one that no book can have
  // made. Then nothing has changed.
  absl::Status Restore(const v1::DataProgress& progress);

  // The rank's contribution of `clock` counts, and was the last one of these. What it does not hold
  // is done all the same if nobody does; what somebody else holds is his to do.
  void Done(uint32_t rank, Interval batches, uint64_t clock);
  // Gives the rank more, until it holds `want`: at a time no more than half of what is left for
  // each of the `sharers`, so that all end together (guided self-scheduling: Polychronopoulos and
  // Kuck 1987). What of it belongs to a clock that is under way counts for nothing there: a worker
  // whose clocks are long gets its share as others do.
  void Lease(uint32_t rank, uint64_t want, uint32_t sharers);
  std::vector<Interval> Held(uint32_t rank) const;
  // The rank is lost, or has left.
  void TakeBack(uint32_t rank);
  // The rank does not do these after all. Of the sharers, it is the last to be given them again: it
  // would be as late with them. What it does not hold stays as it is.
  void Return(uint32_t rank, Interval batches);

  // What a cut has for certain that has all contributions of clocks below `clocks`, by rank. Empty:
  // all that are done.
  v1::DataProgress At(const std::vector<uint64_t>& clocks) const;
  // That cut is durable: nothing older will ever be asked for.
  void Forget(const std::vector<uint64_t>& clocks);

  // Every batch of the job is done.
  bool over() const { return next_ >= rules_.batches && undone_.empty(); }
  // Not over, and there is none left to give.
  bool all_leased() const { return next_ >= rules_.batches && free_.empty(); }
  bool endless() const { return rules_.batches == kEndless; }
  // Of the epochs from the first on: those of which every batch is done.
  uint64_t whole_epochs() const;
  uint64_t done() const { return next_ - undone_.size(); }
  uint64_t leased() const { return undone_.size() - free_.size(); }
  uint64_t taken_back() const { return taken_back_; }

 private:
  struct DoneBatches {
    Interval batches;
    uint32_t rank = 0;
    uint64_t clock = 0;
  };
  // Some of what is done, no longer told apart.
  struct DoneLongAgo {
    // All of it, and maybe others.
    Interval batches;
    // By rank: the newest contribution of them.
    std::map<uint32_t, uint64_t> clocks;
  };
  absl::Status Check(const v1::DataProgress& progress) const;
  uint64_t Share(uint32_t sharers) const;
  // The next for the rank, at most `more` (above 0). Nothing: there are none.
  std::optional<Interval> TakeNext(uint32_t rank, uint64_t more, uint32_t sharers);
  void ForgetDetails();

  const Rules rules_;
  // The first that was never given out; all before it are in undone_ or done.
  uint64_t next_ = 0;
  IntervalSet undone_;
  // Of undone_: nobody's.
  IntervalSet free_;
  // By rank; the rest of undone_.
  std::map<uint32_t, IntervalSet> held_;
  // By rank: what it was the last to give back, as long as that is not done.
  std::map<uint32_t, IntervalSet> returned_;
  // What the newest durable cut may not have, in the order in which it was reported; and what came
  // before that, once it was too much.
  std::vector<DoneBatches> recent_;
  std::optional<DoneLongAgo> long_ago_;
  uint64_t taken_back_ = 0;
};

}  // namespace leeway
