// The CPU backend. oneDNN computes products and convolutions if Leeway is built with it; otherwise
// Eigen does. Some functions are Eigen's vector functions, and all others are plain loops. Each
// file has one family of kernels.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"
#include "worker/compute/onednn/cpu_library.h"
#include "worker/compute/precision.h"
#include "worker/compute/thread_pool.h"

namespace leeway {

struct MatrixRef;

// Results are the same on every machine that runs the same binary with the same number of threads.
// With oneDNN, the machines' processors must also be of the same model.
class EigenBackend final : public Backend {
 public:
  // Returns RESOURCE_EXHAUSTED if the threads cannot be started.
  static absl::StatusOr<std::unique_ptr<EigenBackend>> Make(uint32_t threads,
                                                            Precision precision = Precision::kFp32);

  // Returns the name of the library that the backend uses, for the log. Empty if it uses no
  // library.
  std::string library() const { return library_ == nullptr ? "" : library_->about(); }

  absl::StatusOr<DeviceMemory> Allocate(size_t count) override;
  bool shares_host_memory() const override { return true; }

  // Both copies are done when the call returns, so they ignore the stream.
  void CopyToDevice(Stream stream, std::span<const float> host, float* device) override;
  void CopyToHost(Stream stream, const float* device, std::span<float> host) override;
  StreamEvent Record(Stream stream) override { return {}; }
  void Wait(Stream stream, StreamEvent event) override {}
  bool Done(StreamEvent event) override { return true; }
  absl::Status Await(StreamEvent event) override { return status(); }
  absl::Status status() const override {
    return library_ == nullptr ? absl::OkStatus() : library_->status();
  }

  void AddDifference(size_t count, float scale, const float* a, const float* b, const float* base,
                     float* out) override;
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

 private:
  EigenBackend(uint32_t threads, Precision precision);

  // Returns true if the library computes this convolution. It does so if it has fast kernels for
  // the shape.
  bool LibraryTakes(const GroupedShape& shape, size_t batch) const {
    return library_ != nullptr && library_->Takes(shape, batch);
  }
  // Computes y = (x - mean) * (gamma * inverse) + beta, column by column.
  void Normalize(const BatchNormOptions& options, const BatchNormWeights& weights,
                 const float* mean, const float* inverse, const float* x, float* y);
  enum class Factor { kFirst, kSecond };
  // Rounds a factor of a product. `matrix` is stored as [rows x columns]. It stays unchanged if
  // nothing is rounded, or becomes a rounded copy. The copy is valid until the next call for the
  // same factor.
  void RoundFactor(Factor factor, size_t rows, size_t columns, MatrixRef& matrix);

  // Calls body(head) for each head of the batch, on several threads.
  template <typename Body>
  void ForHeads(const AttentionShape& shape, size_t batch, Body body);
  // Does the same as Gemm, but on the caller's thread. All strides must be set.
  void HeadGemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b, float* c);

  ThreadPool pool_;
  // The library for products. Null if no library is used.
  const std::unique_ptr<CpuLibrary> library_;
  const Precision precision_;
  // Buffers of the running kernel. For each column: the totals of each thread's share, and the
  // factors.
  std::vector<double> column_totals_;
  std::vector<float> column_floats_;
  std::vector<float> inverses_;
  // The rounded copy of each factor, as large as the largest factor so far. Empty for fp32.
  std::array<std::vector<float>, 2> rounded_;
};

}  // namespace leeway
