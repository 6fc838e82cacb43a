// Collects metrics that are to be sent to the coordinator.
#pragma once

#include <vector>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Merges the metrics of a twentieth of a second into one record, so that a worker with ten thousand
// clocks a second does not spend its time on reports. Pure; not thread-safe.
class MetricsQueue {
 public:
  // The longest time that one record covers.
  static constexpr Duration kMergeWithin = std::chrono::milliseconds(50);
  // The largest number of records, because the coordinator may be gone for long. When it is
  // reached, all further metrics are merged into the last record. At 20 records a second that is
  // after about seven minutes.
  static constexpr size_t kRecordsMax = 8192;

  void Add(const v1::StepMetrics& metrics, Time now);
  // Returns all records, and forgets them.
  std::vector<v1::StepMetrics> Take();
  // Puts records back that did not arrive. They become the oldest records again.
  void PutBack(std::vector<v1::StepMetrics> records);
  bool empty() const { return records_.empty(); }

 private:
  std::vector<v1::StepMetrics> records_;
  // The time at which the last record was begun. After kMergeWithin no more metrics are merged into
  // it.
  Time last_began_;
};

}  // namespace leeway
