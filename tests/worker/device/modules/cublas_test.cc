// cuBLAS is found in the given place, and its absence is an error that says what to do. Built with
// the toolkit only; needs no GPU.
#include "worker/device/cuda/module/cublas.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/skip.h"
#include "tests/worker/device/says.h"

namespace leeway::cuda {
namespace {

TEST_CASE("Without cuBLAS its loader says what to install, and where it looked") {
  const auto cublas = LoadCublas({"/nowhere/at/all"});
  CHECK(cublas.status().code() == absl::StatusCode::kNotFound);
  CHECK(testing::Says(cublas.status(), {"/nowhere/at/all", "LEEWAY_CUDA_LIBRARIES"}));
}

TEST_CASE("The toolkit's cuBLAS has all that is used of it") {
  if (!std::filesystem::exists(LEEWAY_CUDA_LIBRARY_FOLDER)) SKIP("no libraries beside nvcc");
  const auto cublas = LoadCublas({"/nowhere", LEEWAY_CUDA_LIBRARY_FOLDER});
  INFO(cublas.status());
  REQUIRE(cublas.ok());
  // Without a driver it cannot start, and says so.
  cublasHandle_t handle = nullptr;
  const cublasStatus_t status = cublas->create(&handle);
  if (status == CUBLAS_STATUS_SUCCESS) {
    CHECK(cublas->destroy(handle) == CUBLAS_STATUS_SUCCESS);
  } else {
    CHECK(std::string(cublas->describe(status)).size() > 5);
  }
}

}  // namespace
}  // namespace leeway::cuda
