// What a program is told and tells, from and to the coordinator's messages.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "client/exchange/step_exchange.h"
#include "client/library/job.h"
#include "common/update/rule.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

JobInfo InfoFrom(const v1::RegisterWorkerReply& reply);
// The version that every block has at the end of a job that runs to its end and loses no worker.
uint64_t LastVersion(const v1::RegisterWorkerReply& reply);
// So that the headers of a frame stay well below their limit (common/wire/wire.cc).
inline constexpr size_t kRatesMax = 16'384;
// INVALID_ARGUMENT: too many parts, or they do not rise to the end of the trained elements, or a
// factor is none.
absl::StatusOr<ContributionRates> RatesFrom(std::span<const JobRate> rates, uint64_t trained);
// Of the clock that `exchange` has ended last.
v1::StepMetrics MetricsFrom(const ClockMeasures& measures, const StepExchange& exchange);

}  // namespace leeway
