// A fake cuDNN for tests: descriptors are plain numbers, convolutions are plain loops, and its
// heuristics offer what a test wants.
#pragma once

#include <vector>

#include "worker/device/cuda/module/cudnn.h"

namespace leeway::testing {

struct FakeCudnn {
  FakeCudnn() { offers.emplace_back(); }

  struct Offer {
    int algorithm = 1;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    cudnnDeterminism_t determinism = CUDNN_DETERMINISTIC;
    cudnnMathType_t math = CUDNN_FMA_MATH;
    // The workspace that the algorithm reports when it is asked.
    size_t workspace = 0;
  };
  std::vector<Offer> offers;
  // What these calls return.
  cudnnStatus_t create = CUDNN_STATUS_SUCCESS;
  cudnnStatus_t ask = CUDNN_STATUS_SUCCESS;
  cudnnStatus_t size = CUDNN_STATUS_SUCCESS;
  cudnnStatus_t run = CUDNN_STATUS_SUCCESS;

  int asked = 0;
  // Algorithms that ran.
  std::vector<int> ran;
  size_t workspace_given = 0;
  bool all_fma = true;
  // The number of handles and descriptors that were made and not destroyed.
  int alive = 0;
};

// Returns the library's functions, which read and write `fake`. Only one may be in use at a time.
cuda::Cudnn MakeFakeCudnn(FakeCudnn& fake);

}  // namespace leeway::testing
