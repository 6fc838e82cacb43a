// The number of steps that a run has made. The counts in heartbeats may be lost with server 0 or
// with a worker, but the clocks of a cut are not lost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/length.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The steps by rank, from the clocks that each rank has made since the beginning of the run. Absent
// if clocks do not determine the steps: if a clock may lack some workers
// (consistency.backup_workers, on_worker_loss: continue), if data is leased, or if the last clock
// may be shorter and its length is not known. `steps_per_epoch` is that of the job's length; 0: not
// known. `start` is where the run was resumed with other numbers.
std::optional<std::vector<uint64_t>> StepsOfClocks(const v1::TrainingJob& job,
                                                   uint64_t steps_per_epoch,
                                                   std::span<const uint64_t> clocks,
                                                   StartPoint start = {});

// For leased data: the number of batches of all workers that the cut certainly covers.
uint64_t BatchesOf(const v1::DataProgress& data);

}  // namespace leeway
