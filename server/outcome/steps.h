// How many steps a run has made. What workers tell with their heartbeats may be lost with server 0
// or with a worker; the clocks of a cut are not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/length.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// By rank, of the clocks that each has made from the beginning of the run. Absent where clocks do
// not tell: where a clock need not be everybody's (consistency.backup_workers, on_worker_loss:
// continue), where data is leased, and where the last clock may be a short one and nobody knows.
// `steps_per_epoch`: of the job's length; 0: not known. `start`: where the run was resumed with
// other numbers.
std::optional<std::vector<uint64_t>> StepsOfClocks(const v1::TrainingJob& job,
                                                   uint64_t steps_per_epoch,
                                                   std::span<const uint64_t> clocks,
                                                   StartPoint start = {});

// Where data is leased: the batches of all workers that the cut has for certain.
uint64_t BatchesOf(const v1::DataProgress& data);

}  // namespace leeway
