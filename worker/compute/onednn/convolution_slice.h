// The three products of a convolution by oneDNN, for one thread's slice of a batch.
#pragma once

#include <cstddef>
#include <memory>

#include <oneapi/dnnl/dnnl.hpp>

#include "worker/compute/onednn/cpu_library.h"
#include "worker/compute/onednn/primitive_call.h"

namespace leeway {

// Each product has the layout of weights that its kernel likes best: they are reordered at each
// call, which takes a hundredth of its time. For one thread at a time. Throws dnnl::error.
class ConvolutionSlice {
 public:
  // Null: oneDNN does not have fast kernels for all three.
  static std::unique_ptr<ConvolutionSlice> Make(const GroupedShape& shape, size_t batch);

  // Floats.
  size_t scratch() const { return scratchpad_ + scratchpad_floats_; }
  // Scratch begins on a cache line. bias may be null.
  void Forward(const float* x, const float* weight, const float* bias, float* scratch, float* y);
  // dx may be null: not wanted.
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
  // Where in the scratch: weights in a layout of oneDNN's, from 0 on; a bias; the scratchpad.
  size_t bias_ = 0;
  size_t scratchpad_ = 0;
  size_t scratchpad_floats_ = 0;
};

}  // namespace leeway
