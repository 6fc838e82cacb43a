#include "worker/device/cuda/module/cublas.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/device/cuda/module/libraries.h"

namespace leeway::cuda {
namespace {

constexpr int kVersion = CUDART_VERSION / 1000;

absl::StatusOr<Cublas> TakeAll(void* library) {
  Cublas cublas;
  const auto take = [library](const char* name, auto& function) {
    return Take(library, "cuBLAS", name, function);
  };
  RETURN_IF_ERROR(take("cublasCreate_v2", cublas.create));
  RETURN_IF_ERROR(take("cublasDestroy_v2", cublas.destroy));
  RETURN_IF_ERROR(take("cublasSetStream_v2", cublas.set_stream));
  RETURN_IF_ERROR(take("cublasSetWorkspace_v2", cublas.set_workspace));
  RETURN_IF_ERROR(take("cublasSetMathMode", cublas.set_math_mode));
  RETURN_IF_ERROR(take("cublasGemmEx_64", cublas.gemm));
  RETURN_IF_ERROR(take("cublasGetStatusString", cublas.describe));
  return cublas;
}

}  // namespace

absl::StatusOr<Cublas> LoadCublas(const std::vector<std::string>& folders) {
  std::vector<std::string> errors;
  for (const std::string& folder : folders) {
    // Loads cuBLASLt first. cuBLAS needs it, and finds a library that is already loaded, whatever
    // its folder is.
    (void)dlopen(LibraryFile(folder, "libcublasLt", kVersion).c_str(), RTLD_LAZY | RTLD_LOCAL);
    void* const library = OpenLibrary({folder}, "libcublas", kVersion, errors);
    if (library != nullptr) return TakeAll(library);
  }
  return absl::NotFoundError(absl::StrCat(
      "cuBLAS of CUDA ", kVersion, " was not found on this machine (", absl::StrJoin(errors, "; "),
      "): install the toolkit's libraries, or set LEEWAY_CUDA_LIBRARIES to their folder"));
}

}  // namespace leeway::cuda
