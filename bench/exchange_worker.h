// A worker of a real job that computes nothing: it registers, attaches and exchanges the whole
// vector, clock after clock.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

struct ExchangeWorkerOptions {
  // host:port.
  std::string coordinator;
  uint32_t rank = 0;
  // Of the model that it registers.
  v1::ModelSchema schema;
};

// Told {"open": true} it joins the job, which takes until all workers have; told {"clocks": n} it
// makes as many exchanges and answers {"seconds": [of each], "block_bytes"}.
BenchService ExchangeWorker(const ExchangeWorkerOptions& options);

}  // namespace leeway
