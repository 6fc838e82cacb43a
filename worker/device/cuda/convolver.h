// The interface of a library that computes convolutions without patches: cuDNN, where it is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "worker/compute/shapes.h"

namespace leeway::cuda {

// The three products of a convolution.
enum class ConvolutionPass : uint8_t {
  // (x, filters) to y.
  kForward,
  // (dy, filters) to dx.
  kData,
  // (x, dy) to the filters' gradient.
  kFilters,
};

struct Convolution {
  ConvolutionPass pass = ConvolutionPass::kForward;
  Conv2dShape shape;
  size_t batch = 0;
};

// Images are NHWC. Filters are [filters x kernel x kernel x channels]: the transpose of the
// Backend's. Outputs are overwritten. Products and sums are fp32, in an order that depends on the
// sizes alone. Codes are those of runtime.h.
class Convolver {
 public:
  virtual ~Convolver() = default;

  // Decides at the first use of this convolution, and for good, how it is computed. *takes says
  // whether this library computes it at all.
  virtual int Prepare(const Convolution& convolution, bool* takes) = 0;
  // Queues the convolution in kCompute. *takes is false if the library refuses it after all, which
  // is also for good; then nothing is queued.
  virtual int Run(const Convolution& convolution, const float* a, const float* b, float* out,
                  bool* takes) = 0;

  virtual std::string Describe(int code) const = 0;
  virtual bool OutOfMemory(int code) const = 0;
};

}  // namespace leeway::cuda
