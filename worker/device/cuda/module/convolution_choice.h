// Decides which convolutions cuDNN computes, and which of its algorithms it may use.
#pragma once

#include <cstddef>

#include "worker/device/cuda/convolver.h"

namespace leeway::cuda {

// What cuDNN reports about an algorithm. cuDNN orders the algorithms by its own heuristics, the
// fastest first. The module does not time them, because a choice by timing would change from run to
// run, and the bits of the results with it.
struct AlgorithmOffer {
  // cuDNN's number for the algorithm, within the pass.
  int algorithm = 0;
  bool supported = false;
  bool deterministic = false;
  // True if the algorithm multiplies fp32 values without rounding them to TF32 or less.
  bool full_precision = false;
};

// Returns true if the algorithm may be used. Only algorithms that compute matrix products, implicit
// or explicit, may be used. Winograd's and Fourier's algorithms transform the factors and lose
// digits. BWD_DATA_ALGO_0, BWD_FILTER_ALGO_0 and BWD_FILTER_ALGO_3 add with atomics, in any order.
inline bool MayUse(ConvolutionPass pass, const AlgorithmOffer& offer) {
  if (!offer.supported || !offer.deterministic || !offer.full_precision) return false;
  switch (pass) {
    case ConvolutionPass::kForward:
      return offer.algorithm >= 0 && offer.algorithm <= 2;
    case ConvolutionPass::kData:
    case ConvolutionPass::kFilters:
      return offer.algorithm == 1;
  }
  return false;
}

// Returns true if cuDNN's deterministic fp32 algorithms are likely to be faster than products of
// patches. The result depends on sizes alone, so it is the same in each run. The thresholds come
// from measurements on an H200 (docs/lab/gpu.md).
inline bool IsFasterByLibrary(const Convolution& convolution) {
  const Conv2dShape& shape = convolution.shape;
  // With kernel 1, a patch is a single pixel, and with stride 1 no patches are needed at all.
  if (shape.kernel == 1) return false;
  const ImageShape out = shape.output();
  const size_t rows = convolution.batch * out.height * out.width;
  switch (convolution.pass) {
    case ConvolutionPass::kForward:
      return rows >= 16384;
    case ConvolutionPass::kData:
      return rows >= 16384 && shape.input.channels >= 32;
    case ConvolutionPass::kFilters:
      return rows >= 131072 && shape.input.channels >= 64;
  }
  return false;
}

}  // namespace leeway::cuda
