// Which of cuDNN's algorithms a convolution may use.
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

}  // namespace leeway::cuda
