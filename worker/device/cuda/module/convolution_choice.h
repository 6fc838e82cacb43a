// Which convolutions are cuDNN's, and which of its algorithms they may use.
#pragma once

#include <cstddef>

#include "worker/device/cuda/convolver.h"

namespace leeway::cuda {

// What cuDNN says of an algorithm, the fastest first by its own rules of thumb. Nothing is timed: a
// choice by timing would change from run to run, and the bits with it.
struct AlgorithmOffer {
  // As cuDNN numbers those of the pass.
  int algorithm = 0;
  bool supported = false;
  bool deterministic = false;
  // Products of fp32 values, neither TF32 nor less.
  bool full_precision = false;
};

// Of implicit and explicit products only: Winograd's and Fourier's algorithms transform what they
// multiply, and lose digits. BWD_DATA_ALGO_0, BWD_FILTER_ALGO_0 and BWD_FILTER_ALGO_3 add with
// atomics, in any order.
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

// Whether cuDNN's deterministic fp32 algorithms are likely to be faster than products of patches.
// By sizes alone, and so the same in each run: the borders lie between what was measured on an H200
// (docs/lab/gpu.md).
inline bool IsFasterByLibrary(const Convolution& convolution) {
  const Conv2dShape& shape = convolution.shape;
  // No more patches than pixels, and none at all with stride 1.
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
