// The interface of a library that computes convolutions without patches. The library is cuDNN, if
// it is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "worker/compute/shapes.h"

namespace leeway::cuda {

// The three products of a convolution, with their inputs and output.
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

// Images are NHWC. Filters are [filters x kernel x kernel x channels], which is the transpose of
// the Backend's layout. Outputs are overwritten. Products and sums are fp32, in an order that
// depends on the sizes alone. The methods return the codes of runtime.h.
class Convolver {
 public:
  virtual ~Convolver() = default;

  // At the first use of this convolution, decides how it is computed. The decision is final. Sets
  // *takes to true if this library computes the convolution.
  virtual int Prepare(const Convolution& convolution, bool* takes) = 0;
  // Queues the convolution in kCompute. If the library refuses the convolution after all, sets
  // *takes to false and queues nothing. This refusal is final, too.
  virtual int Run(const Convolution& convolution, const float* a, const float* b, float* out,
                  bool* takes) = 0;

  virtual std::string Describe(int code) const = 0;
  virtual bool OutOfMemory(int code) const = 0;
};

}  // namespace leeway::cuda
