// Runs a job itself for some seconds: real servers and workers train on the job's data, and nothing
// is kept. The result includes what no model of a step includes: processors shared by all
// processes, caches that they take from each other, threads that are woken, barriers that wait for
// the last one.
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
  // About how long the measured part takes; starting and warming up come on top.
  double seconds = 2;
};

struct Rehearsal {
  // The wall time of one worker's clock, from the mean of the workers' rates.
  double clock_seconds = 0;
  // The rate of training of all workers together, because not all have the same data.
  double examples_per_second = 0;
  // The share of the exchange during which no worker waited for it: 0 to 1.
  double hidden_share = 0;
  // The number of measured clocks, of all workers together; 0 if the rehearsal has not come far
  // enough.
  uint64_t clocks = 0;
};

// The error of a process that ends contains its log. DEADLINE_EXCEEDED: a minute after the start
// some worker has not completed enough clocks.
absl::StatusOr<Rehearsal> Rehearse(const RehearsalOptions& options);

// Reads the metrics.jsonl of a run of this number of workers: the clocks between two heartbeats of
// each worker that are at least `seconds` apart. The first heartbeat that reports steps is a
// warm-up, and is not counted.
Rehearsal ReadRehearsal(const std::string& metrics, uint32_t workers, double seconds);

}  // namespace leeway
