// Finds and loads cuDNN at run time (libraries.h). Without cuDNN, convolutions are products of
// patches.
#pragma once

#include <string>
#include <vector>

#include <cudnn.h>

#include "absl/status/statusor.h"

namespace leeway::cuda {

// The functions of cuDNN that the module uses. They are from version 7, and cuDNN 9 still has them.
struct Cudnn {
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetCudartVersion) cudart_version = nullptr;
  decltype(&cudnnGetErrorString) describe = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnCreateTensorDescriptor) create_tensor = nullptr;
  decltype(&cudnnSetTensor4dDescriptor) set_tensor = nullptr;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor = nullptr;
  decltype(&cudnnCreateFilterDescriptor) create_filter = nullptr;
  decltype(&cudnnSetFilter4dDescriptor) set_filter = nullptr;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter = nullptr;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution = nullptr;
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution = nullptr;
  decltype(&cudnnSetConvolutionMathType) set_math = nullptr;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution = nullptr;
  decltype(&cudnnGetConvolutionForwardAlgorithm_v7) forward_algorithms = nullptr;
  decltype(&cudnnGetConvolutionForwardWorkspaceSize) forward_workspace = nullptr;
  decltype(&cudnnConvolutionForward) forward = nullptr;
  decltype(&cudnnGetConvolutionBackwardDataAlgorithm_v7) data_algorithms = nullptr;
  decltype(&cudnnGetConvolutionBackwardDataWorkspaceSize) data_workspace = nullptr;
  decltype(&cudnnConvolutionBackwardData) data = nullptr;
  decltype(&cudnnGetConvolutionBackwardFilterAlgorithm_v7) filter_algorithms = nullptr;
  decltype(&cudnnGetConvolutionBackwardFilterWorkspaceSize) filter_workspace = nullptr;
  decltype(&cudnnConvolutionBackwardFilter) filter = nullptr;
};

// Loads cuDNN, which is never unloaded. Returns NOT_FOUND if none of the folders has cuDNN. Returns
// FAILED_PRECONDITION if the library lacks a function, or is for another version of CUDA than this
// module.
absl::StatusOr<Cudnn> LoadCudnn(const std::vector<std::string>& folders);

}  // namespace leeway::cuda
