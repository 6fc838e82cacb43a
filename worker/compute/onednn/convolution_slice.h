// Computes the three products of a convolution with oneDNN, for one thread's slice of a batch.
#pragma once

#include <cstddef>
#include <memory>

#include <oneapi/dnnl/dnnl.hpp>

#include "worker/compute/onednn/cpu_library.h"
#include "worker/compute/onednn/primitive_call.h"

namespace leeway {

// Each product uses the layout of weights that its kernel prefers. The weights are reordered at
// each call, which takes a hundredth of the call's time. Only one thread at a time may use a slice.
// The methods throw dnnl::error.
class ConvolutionSlice {
 public:
  // Returns null if oneDNN does not have fast kernels for all three products.
  static std::unique_ptr<ConvolutionSlice> Make(const GroupedShape& shape, size_t batch);

  // Returns the number of scratch floats that the products need.
  size_t scratch() const { return scratchpad_ + scratchpad_floats_; }
  // `scratch` must begin on a cache line. bias may be null.
  void Forward(const float* x, const float* weight, const float* bias, float* scratch, float* y);
  // dx may be null if it is not needed.
  void Backward(const float* x, const float* weight, const float* dy, float* scratch,
                float* dweight, float* dx);

 private:
  struct Description;

  explicit ConvolutionSlice(const Description& description);
  bool is_fast() const;
  void PlanScratch();
  void BackwardWeights(const float* x, const float* dy, float* scratch, float* dweight);
  void BackwardData(const float* weight, const float* dy, float* scratch, float* dx);

  const size_t filters_;
  const dnnl::engine engine_;
  const dnnl::stream stream_;
  PrimitiveCall forward_;
  PrimitiveCall data_;
  PrimitiveCall weights_;
  PrimitiveCall forward_reorder_;
  PrimitiveCall data_reorder_;
  PrimitiveCall weights_reorder_;
  // Offsets in the scratch. The weights in oneDNN's layout begin at 0; the bias and the scratchpad
  // follow.
  size_t bias_ = 0;
  size_t scratchpad_ = 0;
  size_t scratchpad_floats_ = 0;
};

}  // namespace leeway
