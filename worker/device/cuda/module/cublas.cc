#include "worker/device/cuda/module/cublas.h"

#include <cstdlib>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"

namespace leeway::cuda {
namespace {

std::string FileOf(const std::string& folder, const char* name) {
  const std::string file = absl::StrCat(name, ".so.", CUDART_VERSION / 1000);
  return folder.empty() ? file : absl::StrCat(folder, "/", file);
}

// The folder of this module; empty if that is not known.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&CublasFolders), &info) == 0) return "";
  const std::string file = info.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash);
}

template <typename Function>
absl::Status Take(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cuBLAS has no ", name, ": install that of CUDA ", CUDART_VERSION / 1000));
}

absl::StatusOr<Cublas> TakeAll(void* library) {
  Cublas cublas;
  RETURN_IF_ERROR(Take(library, "cublasCreate_v2", cublas.create));
  RETURN_IF_ERROR(Take(library, "cublasDestroy_v2", cublas.destroy));
  RETURN_IF_ERROR(Take(library, "cublasSetStream_v2", cublas.set_stream));
  RETURN_IF_ERROR(Take(library, "cublasSetWorkspace_v2", cublas.set_workspace));
  RETURN_IF_ERROR(Take(library, "cublasSetMathMode", cublas.set_math_mode));
  RETURN_IF_ERROR(Take(library, "cublasGemmEx_64", cublas.gemm));
  RETURN_IF_ERROR(Take(library, "cublasGetStatusString", cublas.describe));
  return cublas;
}

}  // namespace

std::vector<std::string> CublasFolders() {
  std::vector<std::string> folders;
  if (const char* named = std::getenv("LEEWAY_CUDA_LIBRARIES"); named != nullptr) {
    folders.push_back(named);
  }
  if (std::string own = OwnFolder(); !own.empty()) folders.push_back(std::move(own));
  folders.push_back("");
  folders.push_back("/usr/local/cuda/lib64");
  return folders;
}

absl::StatusOr<Cublas> LoadCublas(const std::vector<std::string>& folders) {
  std::vector<std::string> errors;
  for (const std::string& folder : folders) {
    // It wants cuBLASLt, which is found once it is loaded, wherever it lies.
    (void)dlopen(FileOf(folder, "libcublasLt").c_str(), RTLD_LAZY | RTLD_LOCAL);
    void* const library = dlopen(FileOf(folder, "libcublas").c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library != nullptr) return TakeAll(library);
    errors.push_back(dlerror());
  }
  return absl::NotFoundError(absl::StrCat(
      "cuBLAS of CUDA ", CUDART_VERSION / 1000, " is not on this machine (",
      absl::StrJoin(errors, "; "),
      "): install the toolkit's libraries, or name their folder in LEEWAY_CUDA_LIBRARIES"));
}

}  // namespace leeway::cuda
