#include "run/core/metrics_queue.h"

#include <iterator>
#include <utility>

#include "run/core/figures.h"

namespace leeway {

void MetricsQueue::Add(const v1::StepMetrics& metrics, Time now) {
  const bool room = records_.size() < kRecordsMax;
  if (records_.empty() || (now - last_began_ >= kMergeWithin && room)) {
    records_.push_back(metrics);
    last_began_ = now;
  } else {
    MergeMetrics(metrics, records_.back());
  }
}

std::vector<v1::StepMetrics> MetricsQueue::Take() { return std::exchange(records_, {}); }

void MetricsQueue::PutBack(std::vector<v1::StepMetrics> records) {
  records.insert(records.end(), std::make_move_iterator(records_.begin()),
                 std::make_move_iterator(records_.end()));
  records_ = std::move(records);
}

}  // namespace leeway
