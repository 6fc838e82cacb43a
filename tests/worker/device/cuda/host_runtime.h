// The host in CUDA's place: memory is the host's, work is done when it is queued, and products are
// plain loops as BLAS defines them. The backend's own code and the real bodies of its kernels run
// on it.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "worker/compute/backend.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::testing {

struct HostRuntimeOptions {
  size_t memory_bytes = size_t{1} << 40;
  // The launch and the product with these numbers, counted from 0, fail.
  uint64_t fail_launch = UINT64_MAX;
  uint64_t fail_product = UINT64_MAX;
  // Pinning fails.
  bool refuse_pin = false;
  // There is a library for convolutions (host_convolver.h).
  bool convolver = false;
  // The library refuses these passes at once, or refuses all of them when the first is to run.
  std::set<cuda::ConvolutionPass> refused_passes = {};
  bool refuse_first_run = false;
};

// What happened in a runtime. The backend owns the runtime, so the counts outlive it.
struct HostRuntimeCounts {
  uint64_t launches = 0;
  uint64_t products = 0;
  uint64_t convolutions = 0;
  uint64_t events = 0;
  int64_t allocations = 0;
  std::set<const void*> pinned;
};

std::unique_ptr<cuda::Runtime> MakeHostRuntime(const HostRuntimeOptions& options,
                                               HostRuntimeCounts& counts);

}  // namespace leeway::testing
