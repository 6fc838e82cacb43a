#include "worker/device/cuda/module/start_convolver.h"

#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/module/cudnn_convolver.h"
#include "worker/device/cuda/module/libraries.h"

namespace leeway::cuda {
namespace {

StartedConvolver Without(absl::string_view why) {
  return {nullptr, absl::StrCat("convolution by products of patches: ", why)};
}

}  // namespace

absl::StatusOr<StartedConvolver> StartConvolver(Runtime& runtime) {
  const char* const wanted = std::getenv("LEEWAY_CUDA_CUDNN");
  const absl::string_view use = wanted == nullptr ? "" : wanted;
  if (use == "0") {
    return Without("LEEWAY_CUDA_CUDNN is 0");
  }
  const absl::StatusOr<Cudnn> cudnn = LoadCudnn(LibraryFolders());
  if (!cudnn.ok()) return Without(cudnn.status().message());
  absl::StatusOr<std::unique_ptr<CudnnConvolver>> made =
      CudnnConvolver::Make(*cudnn, runtime, use == "1");
  if (absl::IsResourceExhausted(made.status())) return made.status();
  if (!made.ok()) return Without(made.status().message());
  std::string remark = absl::StrCat("convolution by ", (*made)->name());
  return StartedConvolver{*std::move(made), std::move(remark)};
}

}  // namespace leeway::cuda
