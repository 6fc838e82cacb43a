// Finds and loads cuBLAS at run time (libraries.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cublas_v2.h>

#include "absl/status/statusor.h"

namespace leeway::cuda {

// The functions of cuBLAS that the module uses.
struct Cublas {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasGemmEx_64) gemm = nullptr;
  decltype(&cublasGetStatusString) describe = nullptr;
};

// Loads cuBLAS, which is never unloaded. Returns NOT_FOUND if none of the folders has cuBLAS, and
// FAILED_PRECONDITION if the library lacks a function.
absl::StatusOr<Cublas> LoadCublas(const std::vector<std::string>& folders);

}  // namespace leeway::cuda
