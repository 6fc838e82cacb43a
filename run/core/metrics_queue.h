// Collects metrics that are to be sent to the coordinator.
#pragma once

#include <vector>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Merges the metrics of a twentieth of a second into one record. Otherwise a worker with ten
// thousand clocks a second would spend its time on reports. Pure; not thread-safe.
class MetricsQueue {
 public:
  // The longest time that one record covers.
  static constexpr Duration kMergeWithin = std::chrono::milliseconds(50);
  // The most records that the queue keeps while the coordinator is gone. When the queue is full,
  // after about seven minutes at 20 records a second, all further metrics are merged into the last
  // record.
  static constexpr size_t kRecordsMax = 8192;

  void Add(const v1::StepMetrics& metrics, Time now);
  // Returns all records, and forgets them.
  std::vector<v1::StepMetrics> Take();
  // Puts back records that did not reach the coordinator. They become the oldest records again.
  void PutBack(std::vector<v1::StepMetrics> records);
  bool empty() const { return records_.empty(); }

 private:
  std::vector<v1::StepMetrics> records_;
  // When the last record was begun. After kMergeWithin the queue begins a new record.
  Time last_began_;
};

}  // namespace leeway
