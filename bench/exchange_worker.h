// A worker of a real job that computes nothing. It registers, attaches and exchanges the whole
// vector, clock after clock.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

struct ExchangeWorkerOptions {
  // The address as host:port.
  std::string coordinator;
  uint32_t rank = 0;
  // The schema of the model that it registers.
  v1::ModelSchema schema;
};

// Makes the worker's service. On {"open": true} the worker joins the job, and answers when all
// workers have joined. On {"clocks": n} it makes n exchanges and answers {"seconds": [one for each
// exchange], "block_bytes"}.
BenchService ExchangeWorker(const ExchangeWorkerOptions& options);

}  // namespace leeway
