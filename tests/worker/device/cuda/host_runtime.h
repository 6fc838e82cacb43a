// CUDA's place taken by the host: memory is the host's, work is done when it is queued, and
// products are plain loops as BLAS defines them. What runs over it is the backend's own code and
// the very bodies of its kernels.
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
  // The launch and the product of these numbers, from 0, fail.
  uint64_t fail_launch = UINT64_MAX;
  uint64_t fail_product = UINT64_MAX;
  // Pinning is refused.
  bool refuse_pin = false;
  // There is a library for convolutions (host_convolver.h).
  bool convolver = false;
  // It refuses these at once, or all when the first is to run.
  std::set<cuda::ConvolutionPass> refused_passes = {};
  bool refuse_first_run = false;
};

// What happened to a runtime, which its backend owns.
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
