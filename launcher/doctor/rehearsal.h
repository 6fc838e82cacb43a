// Runs a job itself for some seconds: real servers and workers train on the job's data, and nothing
// is kept. The result includes effects that a calculation (step_model.h) cannot include: processes
// that share processors and caches, the time to wake threads, and barriers that wait for the
// slowest worker.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct RehearsalOptions {
  v1::TrainingJob job;
  std::string data_dir;
  // The folder of leeway-server and leeway-worker.
  std::string program_folder;
  // The approximate time of the measured part. Starting and warming up take further time.
  double seconds = 2;
};

struct Rehearsal {
  // The wall time of one worker's clock, from the mean of the workers' rates.
  double clock_seconds = 0;
  // The measured rate of all workers together. Not all workers have the same data.
  double examples_per_second = 0;
  // The share of the exchange's time during which the workers did not wait for it, 0 to 1.
  double hidden_share = 0;
  // The number of measured clocks of all workers together. 0 if too few clocks are complete to
  // measure.
  uint64_t clocks = 0;
};

// Runs the rehearsal. If a process ends, the error contains its log. Returns DEADLINE_EXCEEDED if a
// worker has not completed enough clocks a minute after the start.
absl::StatusOr<Rehearsal> Rehearse(const RehearsalOptions& options);

// Reads the text of the metrics.jsonl of a run with `workers` workers. Measures the clocks of each
// worker between two heartbeats that are at least `seconds` apart. The first heartbeat that reports
// steps is a warm-up and is not counted.
Rehearsal ReadRehearsal(const std::string& metrics, uint32_t workers, double seconds);

}  // namespace leeway
