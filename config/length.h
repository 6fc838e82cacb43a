// Computes how long a job is: from epochs and clocks in the YAML to steps and clocks of a worker.
//
// A step is one batch of one worker. A clock is one exchange: `accumulation`, `local_steps` or
// `every` steps. An epoch is the longest worker's pass over its data. In async mode nobody waits
// for the longest worker, and an epoch has as many batches as all workers' passes together.
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

// The steps of a clock, at least 1.
uint64_t StepsPerClock(const v1::TrainingJob& job);

// The steps of one worker in an epoch. `steps_of_workers` has the batches in each worker's pass
// over its data. The result is the largest number, or in async mode the mean, rounded up. 0 if no
// worker has batches.
uint64_t StepsPerEpoch(const v1::TrainingJob& job, std::span<const uint64_t> steps_of_workers);

// For an external job: ceil(examples / batch_size). 0 without examples.
uint64_t ExternalBatchesPerEpoch(const v1::TrainingJob& job);

// For an external job: the batches that every worker registers, ceil(ceil(examples / batch_size) /
// workers). With the same number of examples in an iid partition, the longest of Leeway's own
// workers has the same number of batches.
uint64_t ExternalStepsPerEpoch(const v1::TrainingJob& job);

// From `clock` on the job has its present numbers. The steps before it are worth `step` of the
// present steps.
struct StartPoint {
  uint64_t clock = 0;
  uint64_t step = 0;
};

// Where a run at `clock`, with the length `was`, goes on as `job`: at the same place in the epochs,
// to the nearest step. With the same numbers the result is the point from which the job had them,
// and its clocks keep their steps.
StartPoint GoOnFrom(const v1::JobLength& was, uint64_t clock, const v1::TrainingJob& job,
                    uint64_t steps_per_epoch);

// True if clocks are at other places in the epochs than before.
bool IsRenumbered(const v1::JobLength& was, const v1::JobLength& is);

// `steps_per_epoch` is StepsPerEpoch(); 0 counts as 1. A number of steps that does not fit is
// limited to the largest possible one.
v1::JobLength ComputeLength(const v1::TrainingJob& job, uint64_t steps_per_epoch,
                            StartPoint start = {});

// The number of batches to lease in an async job in which all workers together make this number of
// steps, and no worker has a number of its own. A number that does not fit is limited to the
// largest one, 2^60.
std::optional<uint64_t> JobBatches(const v1::TrainingJob& job, const v1::JobLength& length,
                                   uint64_t batches_per_epoch);

// The largest clock that a worker of the job can reach.
uint64_t LargestClock(const v1::JobLength& length, uint32_t workers);

// The interval in clocks (to the nearest), at least 1.
uint64_t IntervalClocks(const v1::Interval& interval, const v1::JobLength& length);

// INVALID_ARGUMENT if a run that continues at `clock` would already have ended, because its `stop`
// was changed to a time in the past. `was` is the previous stop.
absl::Status CheckStopAhead(const v1::Interval& was, const v1::TrainingJob& job,
                            const v1::JobLength& length, uint64_t clock);

// True if the blocks leave spread over the clock's steps.
bool IsSpread(const v1::Exchange& exchange);

// True if a worker keeps something between clocks that a checkpoint must hold: the local weights of
// an elastic or spread exchange, the optimizer slots of a delta exchange, its loss scale in fp16,
// or the residual of compressed contributions. `auto` is resolved.
bool KeepsWorkerState(const v1::TrainingJob& job);

}  // namespace leeway
