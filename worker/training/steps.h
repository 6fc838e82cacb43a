// What every runner does for a step: runs it, checks the result, and adds the result to the report.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "client/calls/block_range.h"
#include "exchange/finite.h"
#include "worker/compute/flat_vector.h"
#include "worker/training/clock_runner.h"

namespace leeway {

// Returns how many full batches `examples` make up, as a fraction.
double Batches(const RunnerContext& context, uint64_t examples);

// Returns "worker 2, clock 17", for example.
std::string Who(const RunnerContext& context, uint64_t clock);

// Returns `status`. In fp16, adds the advice to use bf16 to an error about a value that is not
// finite.
absl::Status SuggestBf16(const RunnerContext& context, const absl::Status& status);

// Runs a step and adds it to the report. If the loss is not finite, returns OUT_OF_RANGE, with two
// exceptions: the job leaves bad gradients out, or the loss scale is above 1 and may be the cause.
// In these two cases the report says so, the step's examples do not count, and the contribution
// must be left out even if its gradient is finite.
absl::StatusOr<StepResult> RunStep(const RunnerContext& context, uint64_t clock, uint64_t step,
                                   const StepVectors& vectors, ClockReport& report,
                                   TrainObserver* observer = nullptr);

// Returns OUT_OF_RANGE if the loss is not finite. Returns OK if the worker leaves out such a
// contribution, because of the job or of the loss scale.
absl::Status CheckLoss(const RunnerContext& context, double loss_sum, float loss_scale = 1);

// Starts to copy the blocks of a contribution, whose elements are `elements`, from the device to
// the host. The elements are encoded if the device encodes contributions. The carrier may have the
// blocks when the returned event is done.
StreamEvent StartContribution(const RunnerContext& context, uint64_t clock, uint64_t examples,
                              const BlockRange& blocks, const ElementRange& elements,
                              FlatVector& contribution);

// Exchanges a whole clock at once: sends `contribution` from the device, waits for the answer, and
// writes it into `weights` on the device. Checks the contribution unless it is known to be finite;
// `what` names the contribution's values in an error. The vectors cross a device's bus in parts, so
// that some parts are on the bus while others are with the servers.
absl::Status ExchangeAll(const RunnerContext& context, uint64_t clock, uint64_t examples,
                         const char* what, bool known_finite, FlatVector& contribution,
                         FlatVector& weights);

}  // namespace leeway
