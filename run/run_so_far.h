// Reads the state of a run from which `leeway train --resume` goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "run/run_folder.h"

namespace leeway {

// The state in which earlier starts left a run. The default values describe a run that has not
// begun.
struct RunSoFar {
  // Whether there is a checkpoint to go on from.
  bool goes_on = false;
  // Whether the run has finished, so that there is nothing to train.
  bool finished = false;
  // Why the run finished before its full length. Empty otherwise.
  std::string ended_early;
  // The number of restarts of each worker, by rank, and of each server, by index.
  std::vector<uint32_t> worker_restarts;
  std::vector<uint32_t> server_restarts;
};

// Looks for the newest checkpoint, and prints the differences between `job` and the run's own job.
// Returns an error if the job cannot go on from the checkpoint or if the checkpoints are damaged.
absl::StatusOr<RunSoFar> ReadRunSoFar(const RunFolder& run, const v1::TrainingJob& job,
                                      uint64_t steps_per_epoch);

}  // namespace leeway
