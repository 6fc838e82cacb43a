// Convolution by a library, if one is loaded and computes the convolution. Each function returns
// true if the library computes the convolution. Otherwise it computes nothing, and the caller
// multiplies patches (cuda_products.cc).
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/transpose.h"
#include "worker/device/cuda/launch.h"

namespace leeway::cuda {

// Only this function decides between the library and patches. The library computes in float32
// throughout, so convolutions with rounded factors always use patches.
bool CudaBackend::TakesConvolution(const Convolution& convolution) {
  return precision_ == Precision::kFp32 && convolution.batch > 0 &&
         queue_.TakesConvolution(convolution);
}

bool CudaBackend::ConvolveForward(const Conv2dShape& shape, size_t batch, const float* x,
                                  const float* weight, const float* bias, float* scratch,
                                  float* y) {
  const Convolution convolution{ConvolutionPass::kForward, shape, batch};
  if (!TakesConvolution(convolution)) return false;
  const size_t patch = shape.patch();
  Launch(queue_, "Conv2dForward", patch * shape.filters,
         Transpose{patch, shape.filters, weight, scratch});
  if (!queue_.Convolve("Conv2dForward", convolution, x, scratch, y)) return false;
  const ImageShape out = shape.output();
  if (bias != nullptr) AddRows(batch * out.height * out.width, shape.filters, bias, y);
  return true;
}

bool CudaBackend::ConvolveData(const Conv2dShape& shape, size_t batch, const float* weight,
                               const float* dy, float* scratch, float* dx) {
  const Convolution convolution{ConvolutionPass::kData, shape, batch};
  if (!TakesConvolution(convolution)) return false;
  const size_t patch = shape.patch();
  Launch(queue_, "Conv2dBackward", patch * shape.filters,
         Transpose{patch, shape.filters, weight, scratch});
  return queue_.Convolve("Conv2dBackward", convolution, dy, scratch, dx);
}

bool CudaBackend::ConvolveFilters(const Conv2dShape& shape, size_t batch, const float* x,
                                  const float* dy, float* scratch, float* dweight) {
  const Convolution convolution{ConvolutionPass::kFilters, shape, batch};
  if (!TakesConvolution(convolution)) return false;
  if (!queue_.Convolve("Conv2dBackward", convolution, x, dy, scratch)) return false;
  const size_t patch = shape.patch();
  Launch(queue_, "Conv2dBackward", patch * shape.filters,
         Transpose{shape.filters, patch, scratch, dweight});
  return true;
}

}  // namespace leeway::cuda
