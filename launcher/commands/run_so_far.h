// What `leeway train --resume` goes on from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/commands/run_folder.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// By default: of a run that has not begun.
struct RunSoFar {
  // There is a checkpoint to go on from.
  bool goes_on = false;
  // It has ended already, as it would again: there is nothing to train.
  bool finished = false;
  // Why it has finished before its length; empty: it has not.
  std::string ended_early;
  // By rank, and by index.
  std::vector<uint32_t> worker_restarts;
  std::vector<uint32_t> server_restarts;
};

// Looks for the newest checkpoint, and shows what differs between `job` and the run's own. Errors:
// the job cannot go on from there, or the checkpoints are damaged.
absl::StatusOr<RunSoFar> ReadRunSoFar(const RunFolder& run, const v1::TrainingJob& job,
                                      uint64_t steps_per_epoch);

}  // namespace leeway
