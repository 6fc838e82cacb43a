#include "server/coordinator/core/lease_book.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"

namespace leeway {

void LeaseBook::Reset() {
  next_ = 0;
  undone_ = {};
  free_ = {};
  held_.clear();
  returned_.clear();
  recent_.clear();
  long_ago_.reset();
}

absl::Status LeaseBook::Check(const v1::DataProgress& progress) const {
  if (progress.batches_per_epoch() != rules_.batches_per_epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("batches_per_epoch is ", progress.batches_per_epoch(),
                     ", but a pass over the data has ", rules_.batches_per_epoch,
                     " batches now, so the batches differ. Continue with the data and the "
                     "data.batch_size of the checkpoint, or begin a new run"));
  }
  if (progress.next() > kBatchMax) {
    return absl::DataLossError(
        absl::StrCat("next is ", progress.next(), "; the maximum is ", kBatchMax));
  }
  uint64_t end = 0;
  for (int i = 0; i < progress.open_size(); ++i) {
    const uint64_t first = progress.open(i).first();
    const uint64_t count = progress.open(i).count();
    // The intervals must be ascending, separate, and below `next`.
    const bool follows = i == 0 || first > end;
    if (!follows || count == 0 || first > progress.next() || count > progress.next() - first) {
      return absl::DataLossError(absl::StrCat(
          "open[", i, "] has ", Counted(count, "batch"), " from batch ", first,
          ", but the range before it ends at ", end, " and next is ", progress.next()));
    }
    end = first + count;
  }
  return absl::OkStatus();
}

absl::Status LeaseBook::Restore(const v1::DataProgress& progress) {
  RETURN_IF_ERROR(Check(progress));
  Reset();
  // The job may have been shortened, so its new end counts.
  next_ = std::min(progress.next(), rules_.batches);
  for (const v1::DataRange& range : progress.open()) {
    undone_.Add({range.first(), std::min(range.first() + range.count(), next_)});
  }
  free_ = undone_;
  return absl::OkStatus();
}

void LeaseBook::Done(uint32_t rank, Interval batches, uint64_t clock) {
  std::vector<Interval> done = free_.Remove(batches);
  if (const auto held = held_.find(rank); held != held_.end()) {
    for (const Interval& part : held->second.Remove(batches)) done.push_back(part);
    if (held->second.empty()) held_.erase(held);
  }
  for (const Interval& part : done) {
    undone_.Remove(part);
    for (auto& [giver, given_back] : returned_) given_back.Remove(part);
    recent_.push_back({part, rank, clock});
  }
  if (recent_.size() > kRecentMax) ForgetDetails();
}

// Merges the older half of the reports. A cut that does not include all the merged reports then
// counts as if it included none of them.
void LeaseBook::ForgetDetails() {
  const auto middle = recent_.begin() + static_cast<std::ptrdiff_t>(recent_.size() / 2);
  if (!long_ago_) long_ago_ = DoneLongAgo{recent_.front().batches, {}};
  for (auto each = recent_.begin(); each != middle; ++each) {
    Interval& batches = long_ago_->batches;
    batches = {std::min(batches.first, each->batches.first),
               std::max(batches.end, each->batches.end)};
    uint64_t& clock = long_ago_->clocks[each->rank];
    clock = std::max(clock, each->clock);
  }
  recent_.erase(recent_.begin(), middle);
}

uint64_t LeaseBook::Share(uint32_t sharers) const {
  if (endless()) return kStockMax;
  const uint64_t left = free_.size() + rules_.batches - std::min(next_, rules_.batches);
  return std::clamp<uint64_t>(left / (2 * std::max<uint64_t>(1, sharers)), 1, kStockMax);
}

std::optional<Interval> LeaseBook::TakeNext(uint32_t rank, uint64_t more, uint32_t sharers) {
  IntervalSet others = free_;
  // Other sharers get returned batches first. A single sharer must get its own again.
  if (const auto own = returned_.find(rank); own != returned_.end() && sharers > 1) {
    for (const Interval& run : own->second.runs()) others.Remove(run);
  }
  if (const auto free = others.TakeFirst(more)) {
    free_.Remove(*free);
    return free;
  }
  const Interval fresh{next_, std::min(next_ + more, std::max(next_, rules_.batches))};
  if (fresh.size() == 0) return free_.TakeFirst(more);
  next_ = fresh.end;
  undone_.Add(fresh);
  return fresh;
}

void LeaseBook::Lease(uint32_t rank, uint64_t want, uint32_t sharers) {
  const auto held = held_.find(rank);
  const uint64_t has = held == held_.end() ? 0 : held->second.size();
  const uint64_t target = std::min(want, rules_.under_way + kStockMax);
  if (has >= target) return;
  uint64_t more = std::min(target - has, Share(sharers));
  while (more > 0) {
    const std::optional<Interval> given = TakeNext(rank, more, sharers);
    if (!given) return;
    held_[rank].Add(*given);
    more -= given->size();
  }
}

std::vector<Interval> LeaseBook::Held(uint32_t rank) const {
  const auto held = held_.find(rank);
  return held == held_.end() ? std::vector<Interval>() : held->second.runs();
}

void LeaseBook::TakeBack(uint32_t rank) {
  returned_.erase(rank);
  const auto held = held_.find(rank);
  if (held == held_.end()) return;
  taken_back_ += held->second.size();
  for (const Interval& run : held->second.runs()) free_.Add(run);
  held_.erase(held);
}

void LeaseBook::Return(uint32_t rank, Interval batches) {
  const auto held = held_.find(rank);
  if (held == held_.end()) return;
  for (const Interval& part : held->second.Remove(batches)) {
    free_.Add(part);
    for (auto& [giver, given_back] : returned_) given_back.Remove(part);
    returned_[rank].Add(part);
  }
  if (held->second.empty()) held_.erase(held);
}

namespace {

// Returns true if a cut has the rank's contribution of `clock`. The cut has, for each rank, the
// contributions of clocks below the rank's entry in `clocks`. If `clocks` is empty, the cut has all
// contributions.
bool Has(const std::vector<uint64_t>& clocks, uint32_t rank, uint64_t clock) {
  return rank >= clocks.size() || clock < clocks[rank];
}

bool HasAll(const std::vector<uint64_t>& clocks, const std::map<uint32_t, uint64_t>& newest) {
  return std::all_of(newest.begin(), newest.end(),
                     [&](const auto& each) { return Has(clocks, each.first, each.second); });
}

}  // namespace

v1::DataProgress LeaseBook::At(const std::vector<uint64_t>& clocks) const {
  IntervalSet open = undone_;
  for (const DoneBatches& each : recent_) {
    if (!Has(clocks, each.rank, each.clock)) open.Add(each.batches);
  }
  if (long_ago_ && !HasAll(clocks, long_ago_->clocks)) open.Add(long_ago_->batches);
  v1::DataProgress progress;
  progress.set_next(next_);
  progress.set_batches_per_epoch(rules_.batches_per_epoch);
  for (const Interval& run : open.runs()) {
    v1::DataRange* range = progress.add_open();
    range->set_first(run.first);
    range->set_count(run.size());
  }
  return progress;
}

void LeaseBook::Forget(const std::vector<uint64_t>& clocks) {
  std::erase_if(recent_,
                [&](const DoneBatches& each) { return Has(clocks, each.rank, each.clock); });
  if (long_ago_ && HasAll(clocks, long_ago_->clocks)) long_ago_.reset();
}

uint64_t LeaseBook::whole_epochs() const {
  return (undone_.empty() ? next_ : undone_.lowest()) / rules_.batches_per_epoch;
}

}  // namespace leeway
