// What every exchange does around a step: run it, check it, add it up.
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

// How many full batches so many examples are.
double Batches(const ExchangeContext& context, uint64_t examples);

// "worker 2, clock 17".
std::string Who(const ExchangeContext& context, uint64_t clock);

// `status`; in fp16 an error, that something is not finite, also says what else to try.
absl::Status SuggestBf16(const ExchangeContext& context, const absl::Status& status);

// Runs a step and adds it to the report. OUT_OF_RANGE if the loss is not finite, unless the job
// leaves bad gradients out, or the loss scale is above 1 and may be to blame: then the report says
// so, the step's examples do not count, and the contribution that it is part of is to be left out,
// also where its gradient happens to be finite.
absl::StatusOr<StepResult> RunStep(const ExchangeContext& context, uint64_t clock, uint64_t step,
                                   const StepVectors& vectors, ClockReport& report,
                                   TrainObserver* observer = nullptr);

// OUT_OF_RANGE if it is not finite, and neither the job nor the loss scale leaves out what follows
// from it.
absl::Status CheckLoss(const ExchangeContext& context, double loss_sum, float loss_scale = 1);

// A zeroed vector for contributions, in memory that whoever takes them up can read.
FloatBuffer MakeContribution(const ExchangeContext& context);
// The exchange of the clock before is complete, and the contribution is going to change.
void BeginContribution(const ExchangeContext& context);

// Brings blocks of a contribution, and these are their elements, from the device to the host,
// encoded where the device encodes them. The client may have them when the event is done.
StreamEvent StartContribution(const ExchangeContext& context, uint64_t clock, uint64_t examples,
                              const BlockRange& blocks, const ElementRange& elements,
                              FlatVector& contribution);

// The exchange of a whole clock at once, from the device's twin of `contribution`, which is `what`,
// to that of `weights`. Checks it, unless it is known to be finite, and waits. Over a bus it goes
// in parts, so that some are on the bus while others are with the servers.
absl::Status ExchangeAll(const ExchangeContext& context, uint64_t clock, uint64_t examples,
                         const char* what, bool known_finite, FlatVector& contribution,
                         FlatVector& weights);

}  // namespace leeway
