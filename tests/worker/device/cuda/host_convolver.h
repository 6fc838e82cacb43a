// A library of convolutions for tests: plain loops over cuDNN's layouts.
#pragma once

#include <string>

#include "tests/worker/device/cuda/host_runtime.h"
#include "worker/device/cuda/convolver.h"

namespace leeway::testing {

// Computes in double. Images are NHWC, filters [filters x kernel x kernel x channels].
void HostConvolve(const cuda::Convolution& convolution, const float* a, const float* b, float* out);

class HostConvolver final : public cuda::Convolver {
 public:
  HostConvolver(const HostRuntimeOptions& options, HostRuntimeCounts& counts)
      : options_(options), counts_(counts) {}

  int Prepare(const cuda::Convolution& convolution, bool* takes) override;
  int Run(const cuda::Convolution& convolution, const float* a, const float* b, float* out,
          bool* takes) override;
  std::string Describe(int code) const override { return "error " + std::to_string(code); }
  bool OutOfMemory(int) const override { return false; }

 private:
  const HostRuntimeOptions& options_;
  HostRuntimeCounts& counts_;
  bool refuses_ = false;
};

}  // namespace leeway::testing
