#include "tests/worker/device/cuda/host_convolver.h"

#include <vector>

namespace leeway::testing {
namespace {

using cuda::Convolution;
using cuda::ConvolutionPass;

// Calls visit(index in x, index in the filters, index in y) for each product of the convolution.
template <typename Visit>
void EachProduct(const Convolution& convolution, const Visit& visit) {
  const Conv2dShape& shape = convolution.shape;
  const ImageShape& in = shape.input;
  const ImageShape out = shape.output();
  size_t y = 0;
  for (size_t n = 0; n < convolution.batch; ++n) {
    for (size_t row = 0; row < out.height; ++row) {
      for (size_t column = 0; column < out.width; ++column) {
        for (size_t k = 0; k < shape.filters; ++k, ++y) {
          for (size_t tap = 0; tap < size_t{shape.kernel} * shape.kernel; ++tap) {
            const size_t r = row * shape.stride + tap / shape.kernel - shape.padding;
            const size_t s = column * shape.stride + tap % shape.kernel - shape.padding;
            // Indices below 0 wrap around.
            if (r >= in.height || s >= in.width) continue;
            for (size_t c = 0; c < in.channels; ++c) {
              visit(((n * in.height + r) * in.width + s) * in.channels + c,
                    (k * shape.kernel * shape.kernel + tap) * in.channels + c, y);
            }
          }
        }
      }
    }
  }
}

size_t OutputSize(const Convolution& convolution) {
  const Conv2dShape& shape = convolution.shape;
  switch (convolution.pass) {
    case ConvolutionPass::kForward:
      return convolution.batch * shape.output().elements();
    case ConvolutionPass::kData:
      return convolution.batch * shape.input.elements();
    case ConvolutionPass::kFilters:
      return shape.patch() * shape.filters;
  }
  return 0;
}

}  // namespace

void HostConvolve(const Convolution& convolution, const float* a, const float* b, float* out) {
  std::vector<double> sums(OutputSize(convolution));
  EachProduct(convolution, [&](size_t x, size_t filter, size_t y) {
    switch (convolution.pass) {
      case ConvolutionPass::kForward:
        sums[y] += static_cast<double>(a[x]) * b[filter];
        break;
      case ConvolutionPass::kData:
        sums[x] += static_cast<double>(a[y]) * b[filter];
        break;
      case ConvolutionPass::kFilters:
        sums[filter] += static_cast<double>(a[x]) * b[y];
        break;
    }
  });
  for (size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<float>(sums[i]);
}

int HostConvolver::Prepare(const Convolution& convolution, bool* takes) {
  *takes = !options_.refused_passes.contains(convolution.pass) && !refuses_;
  return cuda::kSuccess;
}

int HostConvolver::Run(const Convolution& convolution, const float* a, const float* b, float* out,
                       bool* takes) {
  refuses_ = refuses_ || options_.refuse_first_run;
  *takes = !refuses_;
  if (refuses_) return cuda::kSuccess;
  HostConvolve(convolution, a, b, out);
  ++counts_.convolutions;
  return cuda::kSuccess;
}

}  // namespace leeway::testing
