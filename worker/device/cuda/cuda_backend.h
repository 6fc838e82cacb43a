// The backend of an NVIDIA GPU. cuBLAS computes products, and this project's own kernels (kernels/)
// compute the rest. Each file has one family of kernels.
//
// nvcc compiles these files for the module. Tests compile the same files with the host's compiler,
// and use a Runtime that needs no GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"
#include "worker/device/cuda/queue.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::cuda {

struct EncodeInput;

// Every run on the same model of GPU with the same libraries gives the same bits, because the
// order of sums depends on the shapes alone. Memory is allocated only in Make and Allocate.
class CudaBackend final : public Backend {
 public:
  // Returns RESOURCE_EXHAUSTED if the device lacks memory for the partial sums, or for rounded
  // factors.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Make(std::unique_ptr<Runtime> runtime,
                                                           bool blocking,
                                                           Precision precision = Precision::kFp32);
  ~CudaBackend() override;

  absl::StatusOr<DeviceMemory> Allocate(size_t count) override;
  bool shares_host_memory() const override { return false; }
  bool cuts_products() const override { return false; }
  PinnedMemory Pin(std::span<float> host) override;

  void CopyToDevice(Stream stream, std::span<const float> host, float* device) override;
  void CopyToHost(Stream stream, const float* device, std::span<float> host) override;
  StreamEvent Record(Stream stream) override { return queue_.Record(stream); }
  void Wait(Stream stream, StreamEvent event) override { queue_.Wait(stream, event); }
  bool Done(StreamEvent event) override { return queue_.Done(event); }
  absl::Status Await(StreamEvent event) override { return queue_.Await(event); }
  absl::Status status() const override { return queue_.status(); }

  void AddDifference(size_t count, float scale, const float* a, const float* b, const float* base,
                     float* out) override;
  // Returns UNIMPLEMENTED for a rule that cannot run on a GPU because it has no UpdateFormula.
  void Update(const VectorUpdate& update, float* finite) override;
  void Scale(size_t count, float factor, float* x, float* finite) override;
  void Encode(GroupFormat format, size_t count, const float* values, float* residual,
              float* encoded) override;

  void Fill(size_t count, float value, float* y) override;
  void Copy(size_t count, const float* x, float* y) override;
  void CopyColumns(const ColumnCopy& shape, const float* x, float* y) override;
  void Multiply(size_t count, const float* x, const float* y, float* z) override;
  void FillRows(size_t rows, size_t columns, const float* row, float* y) override;
  void AddRows(size_t rows, size_t columns, const float* row, float* y) override;
  void SumRows(size_t rows, size_t columns, const float* x, float* sum) override;

  void Gemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
            bool accumulate, float* c) override;
  size_t Conv2dScratch(const Conv2dShape& shape, size_t batch) const override;
  void Conv2dForward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                     const float* bias, float* scratch, float* y) override;
  void Conv2dBackward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                      const float* dy, float* scratch, float* dweight, float* dbias,
                      float* dx) override;
  void DepthwiseForward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                        const float* bias, float* y) override;
  void DepthwiseBackward(const Conv2dShape& shape, size_t batch, const float* x,
                         const float* weight, const float* dy, float* dweight, float* dx) override;

  void MaxPoolForward(const PoolShape& shape, size_t batch, const float* x, float* winners,
                      float* y) override;
  void MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners, const float* dy,
                       float* dx) override;
  void AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) override;
  void AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy, float* dx) override;

  void ActivationForward(Activation activation, size_t count, const float* x, float* y) override;
  void ActivationBackward(Activation activation, size_t count, const float* kept, const float* dy,
                          float* dx) override;
  void DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x, float* mask,
                      float* y) override;

  void BatchNormForward(const BatchNormOptions& options, const BatchNormWeights& weights,
                        const float* x, float* saved, float* batch_mean, float* batch_var,
                        float* y) override;
  void BatchNormInference(const BatchNormOptions& options, const BatchNormWeights& weights,
                          const float* x, float* y) override;
  void BatchNormBackward(const BatchNormOptions& options, const float* gamma, const float* x,
                         const float* saved, const float* dy, float* dgamma, float* dbeta,
                         float* dx) override;
  void GroupNormForward(const GroupNormShape& shape, const float* gamma, const float* beta,
                        const float* x, float* saved, float* y) override;
  void GroupNormBackward(const GroupNormShape& shape, const float* gamma, const float* x,
                         const float* saved, const float* dy, float* scratch, float* dgamma,
                         float* dbeta, float* dx) override;

  void EmbedForward(const EmbedShape& shape, const float* tokens, const float* weight,
                    float* y) override;
  void EmbedBackward(const EmbedShape& shape, const float* tokens, const float* dy, bool accumulate,
                     float* dweight) override;
  void Rotate(const AttentionShape& shape, size_t batch, bool back, float* qkv) override;
  void AttentionScores(const AttentionShape& shape, size_t batch, const float* qkv,
                       float* p) override;
  void AttentionMix(const AttentionShape& shape, size_t batch, const float* p, const float* qkv,
                    float* y) override;
  void AttentionMixBackward(const AttentionShape& shape, size_t batch, const float* p,
                            const float* qkv, const float* dy, float* dp, float* dqkv) override;
  void AttentionScoresBackward(const AttentionShape& shape, size_t batch, const float* p,
                               const float* qkv, float* dp, float* dqkv) override;

  void SoftmaxCrossEntropy(const SoftmaxLossShape& shape, const float* scores, const float* labels,
                           LossSum* sum, float* dscores) override;
  void Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                float* dscores) override;
  void Squared(size_t batch, const float* scores, const float* labels, LossSum* sum,
               float* dscores) override;

 protected:
  void Free(float* data) override;
  void Unpin(float* host) override;

 private:
  CudaBackend(std::unique_ptr<Runtime> runtime, bool blocking, Precision precision)
      : queue_(std::move(runtime), blocking), precision_(precision) {}

  // Queues a product in this backend's precision. k must be above 0.
  void GemmInPrecision(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                       bool accumulate, float* c);
  void ProductOfCopies(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                       bool accumulate, float* c);
  struct Operand;
  // Copies the [rows x columns] of the operand that begin at (row, column). Returns the distance
  // between the copy's rows.
  size_t CopyPart(const Operand& operand, size_t row, size_t column, size_t rows, size_t columns);

  // Computes the sums of term(row, column) over the rows, and passes them to sink(column, sum).
  template <typename Term, typename Sink>
  void SumColumns(const char* what, size_t rows, size_t columns, const Term& term,
                  const Sink& sink);
  // Encodes values with a scale for each group. `Values` is the kernel that writes a group with
  // `threads_a_group` threads.
  template <typename Groups, typename Values>
  void EncodeScaled(const EncodeInput& whole, size_t threads_a_group, uint8_t* encoded);
  // These functions convolve with the runtime's library (cuda_convolution.cc). They return false if
  // the library does not compute the convolution.
  bool TakesConvolution(const Convolution& convolution);
  bool ConvolveForward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                       const float* bias, float* scratch, float* y);
  bool ConvolveData(const Conv2dShape& shape, size_t batch, const float* weight, const float* dy,
                    float* scratch, float* dx);
  bool ConvolveFilters(const Conv2dShape& shape, size_t batch, const float* x, const float* dy,
                       float* scratch, float* dweight);
  template <typename Loss>
  void SumLosses(const char* what, size_t batch, const Loss& loss, LossSum* sum);

  Queue queue_;
  const Precision precision_;
  // The memory for the partial results of sums in two passes. Kernels use it one after the other.
  void* partials_ = nullptr;
  // The memory for the copies of two factors, FactorBytes() long. Products use it one after the
  // other.
  void* factors_ = nullptr;
};

}  // namespace leeway::cuda
