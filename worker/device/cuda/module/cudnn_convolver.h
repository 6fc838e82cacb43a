// Computes convolutions with cuDNN.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/device/cuda/convolver.h"
#include "worker/device/cuda/module/cudnn.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::cuda {

// Computes in fp32 (FMA_MATH, because cuDNN's default allows TF32) and by deterministic algorithms
// (convolution_choice.h). Refuses convolutions for which cuDNN has no such algorithm.
class CudnnConvolver final : public Convolver {
 public:
  // The size of the memory that cuDNN may use in addition to tensors. It is allocated for the first
  // convolution that needs such memory.
  static constexpr size_t kWorkspaceBytes = size_t{256} << 20;

  // `runtime` must outlive this object. With `always` the convolver computes all convolutions that
  // cuDNN can compute, even those for which cuDNN is slower. Returns RESOURCE_EXHAUSTED if the
  // device lacks memory, and FAILED_PRECONDITION if cuDNN does not start.
  static absl::StatusOr<std::unique_ptr<CudnnConvolver>> Make(const Cudnn& cudnn, Runtime& runtime,
                                                              bool always = false);
  ~CudnnConvolver() override;

  // Returns "cuDNN 9.19.0", for example.
  std::string name() const;
  int Prepare(const Convolution& convolution, bool* takes) override;
  int Run(const Convolution& convolution, const float* a, const float* b, float* out,
          bool* takes) override;
  std::string Describe(int code) const override;
  bool OutOfMemory(int code) const override;

 private:
  struct Plan {
    bool takes = false;
    int algorithm = 0;
    size_t workspace = 0;
    cudnnTensorDescriptor_t x = nullptr;
    cudnnTensorDescriptor_t y = nullptr;
    cudnnFilterDescriptor_t filters = nullptr;
    cudnnConvolutionDescriptor_t convolution = nullptr;
  };
  using Key = std::array<uint64_t, 9>;

  CudnnConvolver(const Cudnn& cudnn, Runtime& runtime, bool always)
      : cudnn_(cudnn), runtime_(runtime), always_(always) {}

  static Key KeyOf(const Convolution& convolution);
  // Makes the plan's descriptors and chooses its algorithm.
  cudnnStatus_t Draw(const Convolution& convolution, Plan& plan) const;
  cudnnStatus_t DescribeShapes(const Convolution& convolution, Plan& plan) const;
  cudnnStatus_t ChooseForward(Plan& plan) const;
  cudnnStatus_t ChooseData(Plan& plan) const;
  cudnnStatus_t ChooseFilters(Plan& plan) const;
  cudnnStatus_t Call(ConvolutionPass pass, const Plan& plan, const float* a, const float* b,
                     float* out) const;

  const Cudnn cudnn_;
  Runtime& runtime_;
  const bool always_;
  cudnnHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace leeway::cuda
