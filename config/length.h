// Computes the length of a job: converts epochs and clocks in the YAML to steps and clocks of a
// worker.
//
// A step is one batch of one worker. A clock is one exchange: `accumulation`, `local_steps` or
// `every` steps. An epoch is a pass over its data by the worker with the most data. In async mode
// no worker waits for that worker, so an epoch has the batches of one pass by every worker.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// In async mode the job's length applies to all workers together (total_clocks), so that a fast
// worker need not wait for a slow one at the end.

// Returns the number of steps in a clock, at least 1.
uint64_t StepsPerClock(const v1::TrainingJob& job);

// Returns the number of steps of one worker in an epoch. `steps_of_workers` has the number of
// batches in each worker's pass over its data. The result is the largest of these numbers, or in
// async mode their mean, rounded up. Returns 0 if no worker has batches.
uint64_t StepsPerEpoch(const v1::TrainingJob& job, std::span<const uint64_t> steps_of_workers);

// For an external job: returns ceil(examples / batch_size), or 0 without examples.
uint64_t ExternalBatchesPerEpoch(const v1::TrainingJob& job);

// For an external job: returns the number of batches that every worker registers,
// ceil(ceil(examples / batch_size) / workers). It equals the largest number of batches of Leeway's
// own workers with the same number of examples in an iid partition.
uint64_t ExternalStepsPerEpoch(const v1::TrainingJob& job);

// The point from which the job has its present number of workers, batch size and steps in a clock.
// All steps before `clock` correspond to `step` of the present steps.
struct StartPoint {
  uint64_t clock = 0;
  uint64_t step = 0;
};

// Returns the start point of a run that had the length `was` and continues with `job` at `clock`.
// The run continues at the same place in its epochs, to the nearest step. If the numbers have not
// changed, the result is the previous start point, so that clocks keep their steps.
StartPoint GoOnFrom(const v1::JobLength& was, uint64_t clock, const v1::TrainingJob& job,
                    uint64_t steps_per_epoch);

// Returns true if a clock stands for another place in the epochs than before.
bool IsRenumbered(const v1::JobLength& was, const v1::JobLength& is);

// Computes the job's length. `steps_per_epoch` is StepsPerEpoch(); 0 counts as 1. If the number of
// steps does not fit, the result has the largest possible number.
v1::JobLength ComputeLength(const v1::TrainingJob& job, uint64_t steps_per_epoch,
                            StartPoint start = {});

// Returns how many batches an async job leases in all. Returns nothing if each worker has its own
// number of steps. The result is at most 2^60.
std::optional<uint64_t> JobBatches(const v1::TrainingJob& job, const v1::JobLength& length,
                                   uint64_t batches_per_epoch);

// Returns the largest clock that a worker of the job can reach.
uint64_t LargestClock(const v1::JobLength& length, uint32_t workers);

// Returns the interval in clocks, rounded to the nearest number, at least 1.
uint64_t IntervalClocks(const v1::Interval& interval, const v1::JobLength& length);

// Returns INVALID_ARGUMENT if a run that continues at `clock` is already past its `stop`, because
// the user changed `stop` to an earlier time. `was` is the previous stop.
absl::Status CheckStopAhead(const v1::Interval& was, const v1::TrainingJob& job,
                            const v1::JobLength& length, uint64_t clock);

// Returns true if workers send the blocks spread over the clock's steps.
bool IsSpread(const v1::Exchange& exchange);

// Returns true if a worker keeps state between clocks that a checkpoint must contain: the local
// weights of an elastic or spread exchange, the optimizer slots of a delta exchange, its loss scale
// in fp16, or the residual of compressed contributions. `auto` is resolved.
bool KeepsWorkerState(const v1::TrainingJob& job);

}  // namespace leeway
