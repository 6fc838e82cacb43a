// For leased data, records which batches of the epochs are free, leased to a rank, or done. Batches
// are numbered through all epochs, in the order in which they are given out. The batches that a
// lost worker has not done are given out again before any new ones.
//
// Promise: if every batch below a number is done, each of these batches was part of a contribution
// that counts. A batch can be part of two contributions in two cases: a worker was lost before it
// reported its contribution, or a worker has not heard yet that it counts as lost.
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
  // The highest number of a batch. It is far above the size of any data set, and low enough that
  // sums of batches do not overflow.
  static constexpr uint64_t kBatchMax = uint64_t{1} << 60;
  // The most batches that one worker may hold, not counting those of its clocks in progress.
  static constexpr uint64_t kStockMax = 4096;
  // The most reports that the book keeps one by one while no cut becomes durable. Beyond that it
  // merges the oldest reports.
  static constexpr size_t kRecentMax = 1 << 16;

  struct Rules {
    // The number of batches in a pass over the data, at least 1.
    uint64_t batches_per_epoch = 1;
    // The number of batches in the whole job.
    uint64_t batches = kEndless;
    // The most batches that a worker's clocks in progress may have together.
    uint64_t under_way = 1;
  };
  explicit LeaseBook(const Rules& rules) : rules_(rules) {}

  // Makes all batches free, and none done.
  void Reset();
  // Restores the progress that a cut holds. Afterwards no rank holds any batch. Returns
  // FAILED_PRECONDITION if the cut's data has another number of batches in a pass. Returns
  // DATA_LOSS, naming the field, if no book can have written this progress. After an error nothing
  // has changed.
  absl::Status Restore(const v1::DataProgress& progress);

  // Records that these batches are done, because the rank's contribution of `clock` counts and
  // includes them. A batch that the rank does not hold becomes done, too, unless another rank holds
  // it.
  void Done(uint32_t rank, Interval batches, uint64_t clock);
  // Leases more batches to the rank, until the rank holds `want`. If the remaining batches were
  // divided equally among the sharers, one call leases at most half of a sharer's share, so that
  // all workers end together (guided self-scheduling: Polychronopoulos and Kuck 1987). Batches of
  // clocks in progress do not count as held, so a worker with long clocks gets as much as the
  // others.
  void Lease(uint32_t rank, uint64_t want, uint32_t sharers);
  std::vector<Interval> Held(uint32_t rank) const;
  // Frees the rank's batches, because the rank is lost or has left.
  void TakeBack(uint32_t rank);
  // Frees these batches, because the rank will not do them after all. Offers them to other sharers
  // first, because this rank would be late with them again. Ignores batches that the rank does not
  // hold.
  void Return(uint32_t rank, Interval batches);

  // Returns the batches that a cut certainly includes. The cut has, for each rank, all
  // contributions of clocks below the rank's entry in `clocks`. If `clocks` is empty, returns all
  // batches that are done.
  v1::DataProgress At(const std::vector<uint64_t>& clocks) const;
  // Forgets reports that no cut after the durable cut with these clocks needs.
  void Forget(const std::vector<uint64_t>& clocks);

  // Returns true if every batch of the job is done.
  bool over() const { return next_ >= rules_.batches && undone_.empty(); }
  // Returns true if no batch is left to lease.
  bool all_leased() const { return next_ >= rules_.batches && free_.empty(); }
  bool endless() const { return rules_.batches == kEndless; }
  // Returns the number of complete epochs, counted from the first epoch.
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
  // Done batches whose reports were merged.
  struct DoneLongAgo {
    // An interval that contains all batches of the reports, and perhaps other batches.
    Interval batches;
    // For each rank, the clock of its newest contribution of these batches.
    std::map<uint32_t, uint64_t> clocks;
  };
  absl::Status Check(const v1::DataProgress& progress) const;
  uint64_t Share(uint32_t sharers) const;
  // Takes at most `more` (above 0) batches for the rank. Returns nullopt if no batch is free.
  std::optional<Interval> TakeNext(uint32_t rank, uint64_t more, uint32_t sharers);
  void ForgetDetails();

  const Rules rules_;
  // The first batch that was never given out. Each batch before it is in undone_, or done.
  uint64_t next_ = 0;
  IntervalSet undone_;
  // The part of undone_ that no rank holds.
  IntervalSet free_;
  // The part of undone_ that each rank holds, by rank.
  std::map<uint32_t, IntervalSet> held_;
  // By rank: the batches that this rank was the last to return and that are not done yet.
  std::map<uint32_t, IntervalSet> returned_;
  // The reports that the newest durable cut may lack, in the order in which they came.
  std::vector<DoneBatches> recent_;
  // The older reports, which were merged because there were too many.
  std::optional<DoneLongAgo> long_ago_;
  uint64_t taken_back_ = 0;
};

}  // namespace leeway
