// Convolutions by a library that computes them without patches: cuDNN, where it is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "worker/compute/shapes.h"

namespace leeway::cuda {

// Which of a convolution's three products.
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
// Backend's. Outputs are written whole. Products and sums are fp32, in an order that the sizes
// alone give. Codes are those of runtime.h.
class Convolver {
 public:
  virtual ~Convolver() = default;

  // Settles how this convolution is computed, at its first use and for good. *takes: whether this
  // library computes it at all.
  virtual int Prepare(const Convolution& convolution, bool* takes) = 0;
  // Queues it in kCompute. *takes is false if the library refuses it after all, as it then does for
  // good; nothing is queued.
  virtual int Run(const Convolution& convolution, const float* a, const float* b, float* out,
                  bool* takes) = 0;

  virtual std::string Describe(int code) const = 0;
  virtual bool OutOfMemory(int code) const = 0;
};

}  // namespace leeway::cuda
