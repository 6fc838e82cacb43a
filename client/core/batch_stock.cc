#include "client/core/batch_stock.h"

#include <algorithm>
#include <utility>

namespace leeway {

std::optional<uint64_t> BatchStock::Take(uint64_t clock) {
  const std::optional<Interval> taken = stock_.TakeFirst(1);
  if (!taken) return std::nullopt;
  taken_.push_back({taken->first, clock});
  return taken->first;
}

void BatchStock::Settle(uint64_t clock, bool dropped) {
  while (!taken_.empty() && taken_.front().clock < clock) {
    const Taken each = taken_.front();
    taken_.pop_front();
    // Adjacent batches share one report.
    if (!done_.empty() && done_.back().first() + done_.back().count() == each.batch) {
      done_.back().set_count(done_.back().count() + 1);
      done_.back().set_clock(each.clock);
      continue;
    }
    v1::DoneRange& range = done_.emplace_back();
    range.set_first(each.batch);
    range.set_count(1);
    range.set_clock(each.clock);
  }
  if (!dropped) return;
  for (const Taken& each : taken_) returned_.Add({each.batch, each.batch + 1});
  taken_.clear();
}

void BatchStock::SetLeft(uint64_t steps) {
  left_ = steps;
  while (stock_.size() > left_) {
    const Interval last = stock_.runs().back();
    const uint64_t beyond = std::min(last.size(), stock_.size() - left_);
    stock_.Remove({last.end - beyond, last.end});
    returned_.Add({last.end - beyond, last.end});
  }
}

std::vector<uint64_t> BatchStock::First(size_t most) const {
  std::vector<uint64_t> batches;
  for (const Interval& run : stock_.runs()) {
    for (uint64_t batch = run.first; batch < run.end && batches.size() < most; ++batch) {
      batches.push_back(batch);
    }
  }
  return batches;
}

void BatchStock::RanDry() {
  if (!none_left_) want_ = std::min(2 * want_, kWantMax);
}

void BatchStock::Ask(v1::LeaseDataRequest& request) {
  asked_.insert(asked_.end(), done_.begin(), done_.end());
  done_.clear();
  for (const v1::DoneRange& range : asked_) *request.add_done() = range;
  for (const Interval& run : returned_.runs()) asked_returned_.Add(run);
  returned_ = {};
  for (const Interval& run : asked_returned_.runs()) {
    v1::DataRange* range = request.add_returned();
    range->set_first(run.first);
    range->set_count(run.size());
  }
  // The number includes the batches in progress, because the worker keeps those, too.
  asked_want_ = stock_.empty() || low() ? std::min(want_, left_) + taken_.size() : 0;
  request.set_want(asked_want_);
}

void BatchStock::OnReply(const v1::LeaseDataReply& reply) {
  asked_.clear();
  asked_returned_ = {};
  stock_ = {};
  uint64_t held = 0;
  for (const v1::DataRange& range : reply.held()) {
    stock_.Add({range.first(), range.first() + range.count()});
    held += range.count();
  }
  // Since the request some of these batches were taken, and some were done.
  for (const Taken& each : taken_) stock_.Remove({each.batch, each.batch + 1});
  for (const v1::DoneRange& range : done_) {
    stock_.Remove({range.first(), range.first() + range.count()});
  }
  for (const Interval& run : returned_.runs()) stock_.Remove(run);
  SetLeft(left_);
  filled_ = stock_.size();
  none_left_ = held < asked_want_ && stock_.empty();
  over_ = reply.over();
}

void BatchStock::OnFailure() {
  done_.insert(done_.begin(), asked_.begin(), asked_.end());
  asked_.clear();
  for (const Interval& run : asked_returned_.runs()) returned_.Add(run);
  asked_returned_ = {};
}

}  // namespace leeway
