// Metrics that wait to be sent to the coordinator.
#pragma once

#include <vector>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Merges metrics of one twentieth of a second into one record. So a worker with ten thousand clocks
// a second is not busy with reports. Pure; not thread-safe.
class MetricsQueue {
 public:
  // A record covers at most this time.
  static constexpr Duration kMergeWithin = std::chrono::milliseconds(50);
  // If there are more, everything goes into the last record: a coordinator may be gone for long. At
  // 20 records a second this is about seven minutes.
  static constexpr size_t kRecordsMax = 8192;

  void Add(const v1::StepMetrics& metrics, Time now);
  // Returns all records, and forgets them.
  std::vector<v1::StepMetrics> Take();
  // The records did not arrive: they become the oldest ones again.
  void PutBack(std::vector<v1::StepMetrics> records);
  bool empty() const { return records_.empty(); }

 private:
  std::vector<v1::StepMetrics> records_;
  // When the last record was begun. It takes no more after kMergeWithin.
  Time last_began_;
};

}  // namespace leeway
