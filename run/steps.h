// Computes how many steps a run has made. The clocks of a cut determine this number. The counts in
// heartbeats cannot be used, because counts may be lost with server 0 or with a worker.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/length.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns the steps by rank, from the clocks that each rank has completed since the run began.
// Returns nullopt if the clocks do not determine the steps: if a clock may lack some workers
// (consistency.backup_workers, on_worker_loss: continue), if data is leased, or if the last clock
// may be shorter and its length is not known. `steps_per_epoch` is the number in the job's length,
// or 0 if it is not known. `start` is the point at which the run was resumed with other numbers.
std::optional<std::vector<uint64_t>> StepsOfClocks(const v1::TrainingJob& job,
                                                   uint64_t steps_per_epoch,
                                                   std::span<const uint64_t> clocks,
                                                   StartPoint start = {});

// For leased data only: returns the number of batches of all workers that the cut certainly
// includes.
uint64_t BatchesOf(const v1::DataProgress& data);

}  // namespace leeway
