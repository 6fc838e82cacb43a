// Converts between the coordinator's messages and the structs of job.h.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/update/rule.h"
#include "exchange/exchange.h"
#include "leeway/v1/coordinator.pb.h"
#include "library/job.h"

namespace leeway {

JobInfo InfoFrom(const v1::RegisterWorkerReply& reply);
// Returns the version that every block has at the end of a job, if the job runs to its end and
// loses no worker.
uint64_t LastVersion(const v1::RegisterWorkerReply& reply);
// The largest number of parts in a call of SetRates. It keeps the headers of a frame well below
// their limit (common/wire/wire.cc).
inline constexpr size_t kRatesMax = 16'384;
// Converts the rates. Returns INVALID_ARGUMENT if there are too many parts, if their ends do not
// rise up to the end of the trained elements, or if a factor is negative or not finite.
absl::StatusOr<ContributionRates> RatesFrom(std::span<const JobRate> rates, uint64_t trained);
// Returns the metrics of the last clock that `exchange` has ended.
v1::StepMetrics MetricsFrom(const ClockMeasures& measures, const Exchange& exchange);

}  // namespace leeway
