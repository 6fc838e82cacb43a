// What a program is told and tells, from and to the coordinator's messages.
#pragma once

#include <cstdint>

#include "client/exchange/step_exchange.h"
#include "client/library/job.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

JobInfo InfoFrom(const v1::RegisterWorkerReply& reply);
// The version that every block has at the end of a job that runs to its end and loses no worker.
uint64_t LastVersion(const v1::RegisterWorkerReply& reply);
// Of the clock that `exchange` has ended last.
v1::StepMetrics MetricsFrom(const ClockMeasures& measures, const StepExchange& exchange);

}  // namespace leeway
