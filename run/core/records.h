// The records of a run. Each record becomes a line of metrics.jsonl (run/metrics_log.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The metrics of one rank.
struct StepRecord {
  uint32_t rank = 0;
  v1::StepMetrics metrics;
};
struct EvaluationRecord {
  uint32_t rank = 0;
  v1::EvaluationMetrics metrics;
};
// What one clock consists of, from a start of the job until the next start. After a restart the job
// may have other workers and exchanges.
struct ClockShape {
  uint32_t workers = 0;
  uint64_t steps_per_clock = 0;
  bool sync = false;
};
struct Event {
  // The kind: job_started, worker_registered, worker_lost and so on; run/metrics_log.h lists them.
  std::string name = {};
  std::optional<uint32_t> rank = {};
  std::optional<uint32_t> server = {};
  std::optional<uint64_t> incarnation = {};
  std::optional<uint64_t> clock = {};
  // Finished, stopped or failed.
  std::string state = {};
  std::string message = {};
  // The shape of a clock. Only job_started has it.
  std::optional<ClockShape> shape = {};
  // Only in job_started: server 0 was started again, and the job goes on where it is.
  bool goes_on = false;
};

}  // namespace leeway
