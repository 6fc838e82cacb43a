// Metrics on their way to the coordinator.
#pragma once

#include <vector>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Merges what happens within a twentieth of a second into one record, so that a worker of ten
// thousand clocks a second is not busy reporting them. Pure; not thread-safe.
class MetricsQueue {
 public:
  // A record is made of what happens in this time.
  static constexpr Duration kMergeWithin = std::chrono::milliseconds(50);
  // Past it everything goes into the last record: a coordinator may be gone for long. At 20 a
  // second some seven minutes.
  static constexpr size_t kRecordsMax = 8192;

  void Add(const v1::StepMetrics& metrics, Time now);
  // All records, which the queue forgets.
  std::vector<v1::StepMetrics> Take();
  // They did not arrive: they are the oldest again.
  void PutBack(std::vector<v1::StepMetrics> records);
  bool empty() const { return records_.empty(); }

 private:
  std::vector<v1::StepMetrics> records_;
  // When the last record was begun; it takes no more after kMergeWithin.
  Time last_began_;
};

}  // namespace leeway
