#include "server/coordinator/lease_book.h"

#include <algorithm>

namespace leeway {

void LeaseBook::Restore(const v1::DataProgress& progress) {
  next_ = progress.next();
  undone_ = {};
  for (const v1::DataRange& range : progress.open()) {
    undone_.Add({range.first(), std::min(range.first() + range.count(), next_)});
  }
  free_ = undone_;
  held_.clear();
  recent_.clear();
}

void LeaseBook::Done(uint32_t rank, Interval batches, uint64_t clock) {
  std::vector<Interval> done = free_.Remove(batches);
  if (const auto held = held_.find(rank); held != held_.end()) {
    for (const Interval& part : held->second.Remove(batches)) done.push_back(part);
    if (held->second.empty()) held_.erase(held);
  }
  for (const Interval& part : done) {
    undone_.Remove(part);
    recent_.push_back({part, rank, clock});
  }
}

uint64_t LeaseBook::Share() const {
  if (endless()) return kHeldMax;
  const uint64_t left = free_.size() + rules_.batches - std::min(next_, rules_.batches);
  return std::max<uint64_t>(1, left / (2 * uint64_t{rules_.workers}));
}

void LeaseBook::Lease(uint32_t rank, uint64_t want) {
  const auto held = held_.find(rank);
  uint64_t has = held == held_.end() ? 0 : held->second.size();
  const uint64_t target = std::min({want, Share(), kHeldMax});
  while (has < target) {
    auto given = free_.TakeFirst(target - has);
    if (!given) {
      given = Interval{next_, std::min(next_ + target - has, std::max(next_, rules_.batches))};
      if (given->size() == 0) return;
      next_ = given->end;
      undone_.Add(*given);
    }
    held_[rank].Add(*given);
    has += given->size();
  }
}

std::vector<Interval> LeaseBook::Held(uint32_t rank) const {
  const auto held = held_.find(rank);
  return held == held_.end() ? std::vector<Interval>() : held->second.runs();
}

void LeaseBook::TakeBack(uint32_t rank) {
  const auto held = held_.find(rank);
  if (held == held_.end()) return;
  taken_back_ += held->second.size();
  for (const Interval& run : held->second.runs()) free_.Add(run);
  held_.erase(held);
}

v1::DataProgress LeaseBook::At(const std::vector<uint64_t>& clocks) const {
  IntervalSet open = undone_;
  for (const DoneBatches& each : recent_) {
    if (each.rank < clocks.size() && each.clock >= clocks[each.rank]) open.Add(each.batches);
  }
  v1::DataProgress progress;
  progress.set_next(next_);
  for (const Interval& run : open.runs()) {
    v1::DataRange* range = progress.add_open();
    range->set_first(run.first);
    range->set_count(run.size());
  }
  return progress;
}

void LeaseBook::Forget(const std::vector<uint64_t>& clocks) {
  std::erase_if(recent_, [&](const DoneBatches& each) {
    return each.rank >= clocks.size() || each.clock < clocks[each.rank];
  });
}

uint64_t LeaseBook::whole_epochs() const {
  return (undone_.empty() ? next_ : undone_.lowest()) / rules_.batches_per_epoch;
}

}  // namespace leeway
