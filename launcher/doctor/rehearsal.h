// A job itself, for some seconds: real servers and workers train on the job's data, and nothing of
// it is kept. What no model of a step has in it is in here: processors that all processes share,
// caches that they take from each other, threads that are woken, barriers that wait for the last.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct RehearsalOptions {
  v1::TrainingJob job;
  std::string data_dir;
  // Where leeway-server and leeway-worker are.
  std::string program_folder;
  // Of what is counted, about; starting and warming up come on top.
  double seconds = 2;
};

struct Rehearsal {
  // Wall time of a clock of one worker; by the mean of the workers' rates.
  double clock_seconds = 0;
  // Of training, all workers together: not all have the same data.
  double examples_per_second = 0;
  // Of the exchange, what went on while no worker waited for it: 0 to 1.
  double hidden_share = 0;
  // That were counted, of all workers together; 0: it has not come far enough yet.
  uint64_t clocks = 0;
};

// An error of a process that ends has its log; DEADLINE_EXCEEDED if a minute beyond the start was
// not enough for each worker to complete some clocks.
absl::StatusOr<Rehearsal> Rehearse(const RehearsalOptions& options);

// From the metrics.jsonl of a run of so many workers: the clocks between two heartbeats of each
// worker that are at least `seconds` apart. The first heartbeat that reports steps is not counted,
// to warm up.
Rehearsal ReadRehearsal(const std::string& metrics, uint32_t workers, double seconds);

}  // namespace leeway
