// What every exchange does around a step: run it, check it, add its result to the report.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "client/calls/block_range.h"
#include "client/exchange/finite.h"
#include "client/exchange/read_weights.h"
#include "common/buffer.h"
#include "worker/compute/flat_vector.h"
#include "worker/exchange/exchange.h"

namespace leeway {

// The number of full batches that `examples` make up, as a fraction.
double Batches(const ExchangeContext& context, uint64_t examples);

// "worker 2, clock 17".
std::string Who(const ExchangeContext& context, uint64_t clock);

// Returns `status`. In fp16, an error about a value that is not finite also suggests bf16.
absl::Status SuggestBf16(const ExchangeContext& context, const absl::Status& status);

// Runs a step and adds it to the report. OUT_OF_RANGE if the loss is not finite, unless the job
// leaves bad gradients out, or the loss scale is above 1 and may be the cause. In these cases the
// report says so, the step's examples do not count, and the contribution must be left out even if
// its gradient is finite.
absl::StatusOr<StepResult> RunStep(const ExchangeContext& context, uint64_t clock, uint64_t step,
                                   const StepVectors& vectors, ClockReport& report,
                                   TrainObserver* observer = nullptr);

// OUT_OF_RANGE if the loss is not finite, unless the job or the loss scale leaves such a
// contribution out.
absl::Status CheckLoss(const ExchangeContext& context, double loss_sum, float loss_scale = 1);

// A zeroed vector for contributions, in memory that the sender of the contribution can read.
FloatBuffer MakeContribution(const ExchangeContext& context);
// To be called before a contribution changes: the exchange of the clock before is complete.
void BeginContribution(const ExchangeContext& context);

// Starts to copy the blocks of a contribution, whose elements are `elements`, from the device to
// the host. They are encoded if the device encodes them. The client may have them when the event is
// done.
StreamEvent StartContribution(const ExchangeContext& context, uint64_t clock, uint64_t examples,
                              const BlockRange& blocks, const ElementRange& elements,
                              FlatVector& contribution);

// Exchanges a whole clock at once: sends `contribution` from the device, and writes the answer into
// `weights` on the device. Waits for the answer. Checks the contribution unless it is known to be
// finite; `what` names its values in an error. A device's bus is crossed in parts, so that some
// parts are on the bus while others are with the servers.
absl::Status ExchangeAll(const ExchangeContext& context, uint64_t clock, uint64_t examples,
                         const char* what, bool known_finite, FlatVector& contribution,
                         FlatVector& weights);

}  // namespace leeway
