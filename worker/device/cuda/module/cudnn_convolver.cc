#include "worker/device/cuda/module/cudnn_convolver.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/device/cuda/module/convolution_choice.h"

namespace leeway::cuda {
namespace {

// convolution_choice.h uses these values as plain numbers, so they must match.
static_assert(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM == 0 &&
              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM == 1 &&
              CUDNN_CONVOLUTION_FWD_ALGO_GEMM == 2 && CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 == 1 &&
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 == 1);

// The most algorithms that are requested. cuDNN has fewer for every pass.
constexpr int kOffersMax = 32;

// Returns true if cuDNN refuses a convolution because it has no algorithm for it, or does not
// support its sizes.
bool Refuses(cudnnStatus_t status) {
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  return category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
}

Code CodeOf(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? kSuccess : kCudnn + static_cast<Code>(status);
}

// Returns true if all sizes fit into ints, and an int can index each tensor.
bool Fits(const Convolution& convolution) {
  const Conv2dShape& shape = convolution.shape;
  const size_t most =
      std::max({convolution.batch * shape.input.elements(),
                convolution.batch * shape.output().elements(), shape.patch() * shape.filters});
  return most <= static_cast<size_t>(std::numeric_limits<int>::max());
}

// Chooses the first offered algorithm that may be used and fits into the workspace. `ask` and
// `size` call cuDNN's functions for the pass.
template <typename Offer, typename Plan, typename Ask, typename Size>
cudnnStatus_t Choose(ConvolutionPass pass, const Ask& ask, const Size& size, Plan& plan) {
  std::array<Offer, kOffersMax> offers = {};
  int count = 0;
  const cudnnStatus_t asked = ask(kOffersMax, &count, offers.data());
  if (asked != CUDNN_STATUS_SUCCESS) return asked;
  for (int i = 0; i < std::min(count, kOffersMax); ++i) {
    const Offer& offer = offers[i];
    const bool full = offer.mathType == CUDNN_FMA_MATH || offer.mathType == CUDNN_DEFAULT_MATH;
    if (!MayUse(pass, {static_cast<int>(offer.algo), offer.status == CUDNN_STATUS_SUCCESS,
                       offer.determinism == CUDNN_DETERMINISTIC, full})) {
      continue;
    }
    // The workspace size depends on the descriptor's arithmetic, which is FMA.
    size_t bytes = 0;
    if (size(offer.algo, &bytes) != CUDNN_STATUS_SUCCESS) continue;
    if (bytes > CudnnConvolver::kWorkspaceBytes) continue;
    plan.takes = true;
    plan.algorithm = static_cast<int>(offer.algo);
    plan.workspace = bytes;
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudnnConvolver>> CudnnConvolver::Make(const Cudnn& cudnn,
                                                                     Runtime& runtime,
                                                                     bool always) {
  std::unique_ptr<CudnnConvolver> made(new CudnnConvolver(cudnn, runtime, always));
  const Code entered = runtime.BeforeLaunch();
  if (entered != kSuccess) return absl::InternalError(runtime.Describe(entered));
  cudnnStatus_t status = cudnn.create(&made->handle_);
  if (status == CUDNN_STATUS_SUCCESS) {
    auto* const stream = static_cast<cudaStream_t>(runtime.native(Stream::kCompute));
    status = cudnn.set_stream(made->handle_, stream);
  }
  if (status == CUDNN_STATUS_SUCCESS) return made;
  const std::string what = absl::StrCat("starting ", made->name(), " on ", runtime.device(), ": ",
                                        made->Describe(CodeOf(status)));
  if (made->OutOfMemory(CodeOf(status))) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": free some of the device's memory"));
  }
  return absl::FailedPreconditionError(what);
}

CudnnConvolver::~CudnnConvolver() {
  (void)runtime_.BeforeLaunch();
  for (auto& [key, plan] : plans_) {
    if (plan.x != nullptr) (void)cudnn_.destroy_tensor(plan.x);
    if (plan.y != nullptr) (void)cudnn_.destroy_tensor(plan.y);
    if (plan.filters != nullptr) (void)cudnn_.destroy_filter(plan.filters);
    if (plan.convolution != nullptr) (void)cudnn_.destroy_convolution(plan.convolution);
  }
  if (handle_ != nullptr) (void)cudnn_.destroy(handle_);
  if (workspace_ != nullptr) (void)runtime_.Free(workspace_);
}

std::string CudnnConvolver::name() const {
  const size_t version = cudnn_.version();
  return absl::StrCat("cuDNN ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

std::string CudnnConvolver::Describe(int code) const {
  return absl::StrCat("cuDNN: ", cudnn_.describe(static_cast<cudnnStatus_t>(code - kCudnn)));
}

bool CudnnConvolver::OutOfMemory(int code) const {
  return code == kCudnn + CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
         code == kCudnn + CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

CudnnConvolver::Key CudnnConvolver::KeyOf(const Convolution& convolution) {
  const Conv2dShape& shape = convolution.shape;
  return {static_cast<uint64_t>(convolution.pass),
          convolution.batch,
          shape.input.height,
          shape.input.width,
          shape.input.channels,
          shape.filters,
          shape.kernel,
          shape.stride,
          shape.padding};
}

int CudnnConvolver::Prepare(const Convolution& convolution, bool* takes) {
  *takes = false;
  const auto [at, made] = plans_.try_emplace(KeyOf(convolution));
  Plan& plan = at->second;
  if (made && Fits(convolution) && (always_ || IsFasterByLibrary(convolution))) {
    if (const Code code = runtime_.BeforeLaunch(); code != kSuccess) return code;
    const cudnnStatus_t status = Draw(convolution, plan);
    if (Refuses(status)) {
      plan.takes = false;
    } else if (status != CUDNN_STATUS_SUCCESS) {
      return CodeOf(status);
    }
  }
  if (plan.takes && plan.workspace > 0 && workspace_ == nullptr) {
    const Code code = runtime_.Allocate(kWorkspaceBytes, &workspace_);
    if (code != kSuccess) return code;
  }
  *takes = plan.takes;
  return kSuccess;
}

cudnnStatus_t CudnnConvolver::Draw(const Convolution& convolution, Plan& plan) const {
  const cudnnStatus_t status = DescribeShapes(convolution, plan);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  switch (convolution.pass) {
    case ConvolutionPass::kForward:
      return ChooseForward(plan);
    case ConvolutionPass::kData:
      return ChooseData(plan);
    case ConvolutionPass::kFilters:
      return ChooseFilters(plan);
  }
  return CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t CudnnConvolver::DescribeShapes(const Convolution& convolution, Plan& plan) const {
  const Conv2dShape& shape = convolution.shape;
  const auto images = [&](cudnnTensorDescriptor_t& tensor, const ImageShape& image) {
    const cudnnStatus_t made = cudnn_.create_tensor(&tensor);
    if (made != CUDNN_STATUS_SUCCESS) return made;
    return cudnn_.set_tensor(tensor, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT,
                             static_cast<int>(convolution.batch), static_cast<int>(image.channels),
                             static_cast<int>(image.height), static_cast<int>(image.width));
  };
  const int kernel = static_cast<int>(shape.kernel);
  const int stride = static_cast<int>(shape.stride);
  const int padding = static_cast<int>(shape.padding);
  cudnnStatus_t status = images(plan.x, shape.input);
  if (status == CUDNN_STATUS_SUCCESS) status = images(plan.y, shape.output());
  if (status == CUDNN_STATUS_SUCCESS) status = cudnn_.create_filter(&plan.filters);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = cudnn_.set_filter(plan.filters, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC,
                               static_cast<int>(shape.filters),
                               static_cast<int>(shape.input.channels), kernel, kernel);
  }
  if (status == CUDNN_STATUS_SUCCESS) status = cudnn_.create_convolution(&plan.convolution);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = cudnn_.set_convolution(plan.convolution, padding, padding, stride, stride, 1, 1,
                                    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  }
  if (status == CUDNN_STATUS_SUCCESS) status = cudnn_.set_math(plan.convolution, CUDNN_FMA_MATH);
  return status;
}

cudnnStatus_t CudnnConvolver::ChooseForward(Plan& plan) const {
  return Choose<cudnnConvolutionFwdAlgoPerf_t>(
      ConvolutionPass::kForward,
      [&](int most, int* count, cudnnConvolutionFwdAlgoPerf_t* offers) {
        return cudnn_.forward_algorithms(handle_, plan.x, plan.filters, plan.convolution, plan.y,
                                         most, count, offers);
      },
      [&](cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
        return cudnn_.forward_workspace(handle_, plan.x, plan.filters, plan.convolution, plan.y,
                                        algorithm, bytes);
      },
      plan);
}

cudnnStatus_t CudnnConvolver::ChooseData(Plan& plan) const {
  return Choose<cudnnConvolutionBwdDataAlgoPerf_t>(
      ConvolutionPass::kData,
      [&](int most, int* count, cudnnConvolutionBwdDataAlgoPerf_t* offers) {
        return cudnn_.data_algorithms(handle_, plan.filters, plan.y, plan.convolution, plan.x, most,
                                      count, offers);
      },
      [&](cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
        return cudnn_.data_workspace(handle_, plan.filters, plan.y, plan.convolution, plan.x,
                                     algorithm, bytes);
      },
      plan);
}

cudnnStatus_t CudnnConvolver::ChooseFilters(Plan& plan) const {
  return Choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
      ConvolutionPass::kFilters,
      [&](int most, int* count, cudnnConvolutionBwdFilterAlgoPerf_t* offers) {
        return cudnn_.filter_algorithms(handle_, plan.x, plan.y, plan.convolution, plan.filters,
                                        most, count, offers);
      },
      [&](cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
        return cudnn_.filter_workspace(handle_, plan.x, plan.y, plan.convolution, plan.filters,
                                       algorithm, bytes);
      },
      plan);
}

int CudnnConvolver::Run(const Convolution& convolution, const float* a, const float* b, float* out,
                        bool* takes) {
  if (const Code code = Prepare(convolution, takes); code != kSuccess || !*takes) return code;
  if (const Code code = runtime_.BeforeLaunch(); code != kSuccess) return code;
  Plan& plan = plans_[KeyOf(convolution)];
  const cudnnStatus_t status = Call(convolution.pass, plan, a, b, out);
  if (CUDNN_STATUS_CATEGORY(static_cast<int>(status)) == CUDNN_STATUS_NOT_SUPPORTED) {
    *takes = plan.takes = false;
    return kSuccess;
  }
  return CodeOf(status);
}

cudnnStatus_t CudnnConvolver::Call(ConvolutionPass pass, const Plan& plan, const float* a,
                                   const float* b, float* out) const {
  const float one = 1, zero = 0;
  switch (pass) {
    case ConvolutionPass::kForward:
      return cudnn_.forward(handle_, &one, plan.x, a, plan.filters, b, plan.convolution,
                            static_cast<cudnnConvolutionFwdAlgo_t>(plan.algorithm), workspace_,
                            plan.workspace, &zero, plan.y, out);
    case ConvolutionPass::kData:
      return cudnn_.data(handle_, &one, plan.filters, b, plan.y, a, plan.convolution,
                         static_cast<cudnnConvolutionBwdDataAlgo_t>(plan.algorithm), workspace_,
                         plan.workspace, &zero, plan.x, out);
    case ConvolutionPass::kFilters:
      return cudnn_.filter(handle_, &one, plan.x, a, plan.y, b, plan.convolution,
                           static_cast<cudnnConvolutionBwdFilterAlgo_t>(plan.algorithm), workspace_,
                           plan.workspace, &zero, plan.filters, out);
  }
  return CUDNN_STATUS_BAD_PARAM;
}

}  // namespace leeway::cuda
