#include "worker/device/cuda/module/cudnn.h"

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/device/cuda/module/libraries.h"

namespace leeway::cuda {
namespace {

absl::Status TakeDescriptors(void* library, Cudnn& cudnn) {
  const auto take = [library](const char* name, auto& function) {
    return Take(library, "cuDNN", name, function);
  };
  RETURN_IF_ERROR(take("cudnnCreateTensorDescriptor", cudnn.create_tensor));
  RETURN_IF_ERROR(take("cudnnSetTensor4dDescriptor", cudnn.set_tensor));
  RETURN_IF_ERROR(take("cudnnDestroyTensorDescriptor", cudnn.destroy_tensor));
  RETURN_IF_ERROR(take("cudnnCreateFilterDescriptor", cudnn.create_filter));
  RETURN_IF_ERROR(take("cudnnSetFilter4dDescriptor", cudnn.set_filter));
  RETURN_IF_ERROR(take("cudnnDestroyFilterDescriptor", cudnn.destroy_filter));
  RETURN_IF_ERROR(take("cudnnCreateConvolutionDescriptor", cudnn.create_convolution));
  RETURN_IF_ERROR(take("cudnnSetConvolution2dDescriptor", cudnn.set_convolution));
  RETURN_IF_ERROR(take("cudnnSetConvolutionMathType", cudnn.set_math));
  return take("cudnnDestroyConvolutionDescriptor", cudnn.destroy_convolution);
}

absl::Status TakePasses(void* library, Cudnn& cudnn) {
  const auto take = [library](const char* name, auto& function) {
    return Take(library, "cuDNN", name, function);
  };
  RETURN_IF_ERROR(take("cudnnGetConvolutionForwardAlgorithm_v7", cudnn.forward_algorithms));
  RETURN_IF_ERROR(take("cudnnGetConvolutionForwardWorkspaceSize", cudnn.forward_workspace));
  RETURN_IF_ERROR(take("cudnnConvolutionForward", cudnn.forward));
  RETURN_IF_ERROR(take("cudnnGetConvolutionBackwardDataAlgorithm_v7", cudnn.data_algorithms));
  RETURN_IF_ERROR(take("cudnnGetConvolutionBackwardDataWorkspaceSize", cudnn.data_workspace));
  RETURN_IF_ERROR(take("cudnnConvolutionBackwardData", cudnn.data));
  RETURN_IF_ERROR(take("cudnnGetConvolutionBackwardFilterAlgorithm_v7", cudnn.filter_algorithms));
  RETURN_IF_ERROR(take("cudnnGetConvolutionBackwardFilterWorkspaceSize", cudnn.filter_workspace));
  return take("cudnnConvolutionBackwardFilter", cudnn.filter);
}

// Checks the version of CUDA, because cuDNN libraries for different versions of CUDA have the same
// soname.
absl::Status CheckCudaVersion(const Cudnn& cudnn) {
  const size_t other = cudnn.cudart_version() / 1000;
  if (other == CUDART_VERSION / 1000) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "cuDNN is for CUDA ", other, ", but this module is for CUDA ", CUDART_VERSION / 1000));
}

absl::StatusOr<Cudnn> TakeAll(void* library) {
  Cudnn cudnn;
  const auto take = [library](const char* name, auto& function) {
    return Take(library, "cuDNN", name, function);
  };
  RETURN_IF_ERROR(take("cudnnGetVersion", cudnn.version));
  RETURN_IF_ERROR(take("cudnnGetCudartVersion", cudnn.cudart_version));
  RETURN_IF_ERROR(CheckCudaVersion(cudnn));
  RETURN_IF_ERROR(take("cudnnGetErrorString", cudnn.describe));
  RETURN_IF_ERROR(take("cudnnCreate", cudnn.create));
  RETURN_IF_ERROR(take("cudnnDestroy", cudnn.destroy));
  RETURN_IF_ERROR(take("cudnnSetStream", cudnn.set_stream));
  RETURN_IF_ERROR(TakeDescriptors(library, cudnn));
  RETURN_IF_ERROR(TakePasses(library, cudnn));
  return cudnn;
}

}  // namespace

absl::StatusOr<Cudnn> LoadCudnn(const std::vector<std::string>& folders) {
  std::vector<std::string> errors;
  void* const library = OpenLibrary(folders, "libcudnn", CUDNN_MAJOR, errors);
  if (library == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("cuDNN ", CUDNN_MAJOR, " was not found on this machine"));
  }
  return TakeAll(library);
}

}  // namespace leeway::cuda
