#include "tests/worker/device/cuda/gpu/staged_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/codec/codec.h"

namespace leeway::testing {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kFromSystemBytes = size_t{64} << 20;
constexpr size_t kAlignFloats = kAlign / sizeof(float);

// The operands of one kernel. They are on the device as long as this object lives.
class Stage {
 public:
  explicit Stage(Backend& device) : device_(device) {}
  ~Stage() {
    for (const Operand& operand : operands_) {
      if (!operand.written) continue;
      device_.CopyToHost(Stream::kCompute, operand.device, {operand.host, operand.count});
    }
    (void)device_.Await(device_.Record(Stream::kCompute));
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // A null pointer stays null.
  const float* In(const float* host, size_t count) {
    return Add(const_cast<float*>(host), count, false);
  }
  float* Out(float* host, size_t count) { return Add(host, count, true); }
  LossSum* Out(LossSum* sum) {
    return reinterpret_cast<LossSum*>(
        Out(reinterpret_cast<float*>(sum), sizeof(LossSum) / sizeof(float)));
  }

 private:
  struct Operand {
    float* host;
    size_t count;
    bool written;
    DeviceMemory memory;
    float* device;
  };

  float* Add(float* host, size_t count, bool written) {
    if (host == nullptr || count == 0) return host;
    for (Operand& operand : operands_) {
      if (operand.host != host || operand.count < count) continue;
      operand.written = operand.written || written;
      return operand.device;
    }
    auto memory = device_.Allocate(count + kAlignFloats);
    // The caller's test then fails by the result.
    if (!memory.ok()) return nullptr;
    const size_t off = reinterpret_cast<uintptr_t>(host) % kAlign / sizeof(float);
    float* const device = memory->get() + off;
    device_.CopyToDevice(Stream::kCompute, {host, count}, device);
    operands_.push_back({host, count, written, *std::move(memory), device});
    return device;
  }

  Backend& device_;
  std::vector<Operand> operands_;
};

// Returns the number of floats from a matrix's first element to its last.
size_t Extent(size_t rows, size_t columns, size_t stride) {
  return rows == 0 ? 0 : (rows - 1) * (stride == 0 ? columns : stride) + columns;
}

// Returns the number of floats of a batch's queries, keys and values.
size_t Qkv(const AttentionShape& shape, size_t batch) {
  return batch * shape.positions * shape.qkv();
}

class StagedBackend final : public Backend {
 public:
  explicit StagedBackend(std::unique_ptr<Backend> device) : device_(std::move(device)) {}

  absl::StatusOr<DeviceMemory> Allocate(size_t count) override {
    const size_t bytes = (count * sizeof(float) + kAlign - 1) / kAlign * kAlign;
    void* const data = std::aligned_alloc(kAlign, std::max(bytes, kAlign));
    if (data == nullptr) return absl::ResourceExhaustedError("no memory");
    // Larger pieces come directly from the system, which promises more memory than there is.
    if (bytes < kFromSystemBytes) std::memset(data, 0, bytes);
    return DeviceMemory(static_cast<float*>(data), DeviceFree{this});
  }
  bool shares_host_memory() const override { return false; }
  bool cuts_products() const override { return device_->cuts_products(); }
  void CopyToDevice(Stream, std::span<const float> host, float* device) override {
    std::copy(host.begin(), host.end(), device);
  }
  void CopyToHost(Stream, const float* device, std::span<float> host) override {
    std::copy_n(device, host.size(), host.begin());
  }
  StreamEvent Record(Stream) override { return {}; }
  void Wait(Stream, StreamEvent) override {}
  bool Done(StreamEvent) override { return device_->status().ok(); }
  absl::Status Await(StreamEvent) override { return device_->status(); }
  absl::Status status() const override { return device_->status(); }

  void AddDifference(size_t count, float scale, const float* a, const float* b, const float* base,
                     float* out) override {
    Stage s(*device_);
    device_->AddDifference(count, scale, s.In(a, count), s.In(b, count), s.In(base, count),
                           s.Out(out, count));
  }
  void Update(const VectorUpdate& update, float* finite) override {
    Stage s(*device_);
    VectorUpdate there = update;
    there.contribution = s.In(update.contribution, update.count);
    there.weights = s.Out(update.weights, update.count);
    for (float*& slot : there.slots) slot = s.Out(slot, update.count);
    device_->Update(there, s.Out(finite, 1));
  }
  void Scale(size_t count, float factor, float* x, float* finite) override {
    Stage s(*device_);
    device_->Scale(count, factor, s.Out(x, count), s.Out(finite, 1));
  }

  void Encode(GroupFormat format, size_t count, const float* values, float* residual,
              float* encoded) override {
    Stage s(*device_);
    device_->Encode(format, count, s.In(values, count), s.Out(residual, count),
                    s.Out(encoded, FloatsFor(CodecOf(format).MaxBytes(count))));
  }

  void Fill(size_t count, float value, float* y) override {
    Stage s(*device_);
    device_->Fill(count, value, s.Out(y, count));
  }
  void Copy(size_t count, const float* x, float* y) override {
    Stage s(*device_);
    device_->Copy(count, s.In(x, count), s.Out(y, count));
  }
  void CopyColumns(const ColumnCopy& shape, const float* x, float* y) override {
    Stage s(*device_);
    device_->CopyColumns(shape, s.In(x, Extent(shape.rows, shape.columns, shape.from_stride)),
                         s.Out(y, Extent(shape.rows, shape.columns, shape.to_stride)));
  }
  void Multiply(size_t count, const float* x, const float* y, float* z) override {
    Stage s(*device_);
    device_->Multiply(count, s.In(x, count), s.In(y, count), s.Out(z, count));
  }
  void FillRows(size_t rows, size_t columns, const float* row, float* y) override {
    Stage s(*device_);
    device_->FillRows(rows, columns, s.In(row, columns), s.Out(y, rows * columns));
  }
  void AddRows(size_t rows, size_t columns, const float* row, float* y) override {
    Stage s(*device_);
    device_->AddRows(rows, columns, s.In(row, columns), s.Out(y, rows * columns));
  }
  void SumRows(size_t rows, size_t columns, const float* x, float* sum) override {
    Stage s(*device_);
    device_->SumRows(rows, columns, s.In(x, rows * columns), s.Out(sum, columns));
  }

  void Gemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
            bool accumulate, float* c) override {
    Stage s(*device_);
    const size_t of_a = op_a == Op::kAsIs ? Extent(shape.m, shape.k, shape.a_stride)
                                          : Extent(shape.k, shape.m, shape.a_stride);
    const size_t of_b = op_b == Op::kAsIs ? Extent(shape.k, shape.n, shape.b_stride)
                                          : Extent(shape.n, shape.k, shape.b_stride);
    device_->Gemm(shape, op_a, s.In(a, of_a), op_b, s.In(b, of_b), accumulate,
                  s.Out(c, Extent(shape.m, shape.n, shape.c_stride)));
  }
  size_t Conv2dScratch(const Conv2dShape& shape, size_t batch) const override {
    return device_->Conv2dScratch(shape, batch);
  }
  void Conv2dForward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                     const float* bias, float* scratch, float* y) override {
    Stage s(*device_);
    device_->Conv2dForward(shape, batch, s.In(x, batch * shape.input.elements()),
                           s.In(weight, shape.patch() * shape.filters), s.In(bias, shape.filters),
                           s.Out(scratch, Conv2dScratch(shape, batch)),
                           s.Out(y, batch * shape.output().elements()));
  }
  void Conv2dBackward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                      const float* dy, float* scratch, float* dweight, float* dbias,
                      float* dx) override {
    Stage s(*device_);
    const size_t weights = shape.patch() * shape.filters;
    device_->Conv2dBackward(shape, batch, s.In(x, batch * shape.input.elements()),
                            s.In(weight, weights), s.In(dy, batch * shape.output().elements()),
                            s.Out(scratch, Conv2dScratch(shape, batch)), s.Out(dweight, weights),
                            s.Out(dbias, shape.filters), s.Out(dx, batch * shape.input.elements()));
  }

  void DepthwiseForward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                        const float* bias, float* y) override {
    Stage s(*device_);
    device_->DepthwiseForward(shape, batch, s.In(x, batch * shape.input.elements()),
                              s.In(weight, size_t{shape.kernel} * shape.kernel * shape.filters),
                              s.In(bias, shape.filters),
                              s.Out(y, batch * shape.output().elements()));
  }
  void DepthwiseBackward(const Conv2dShape& shape, size_t batch, const float* x,
                         const float* weight, const float* dy, float* dweight, float* dx) override {
    Stage s(*device_);
    const size_t weights = size_t{shape.kernel} * shape.kernel * shape.filters;
    const size_t inputs = batch * shape.input.elements();
    device_->DepthwiseBackward(shape, batch, s.In(x, inputs), s.In(weight, weights),
                               s.In(dy, batch * shape.output().elements()), s.Out(dweight, weights),
                               s.Out(dx, inputs));
  }

  void MaxPoolForward(const PoolShape& shape, size_t batch, const float* x, float* winners,
                      float* y) override {
    Stage s(*device_);
    const size_t outputs = batch * shape.output().elements();
    device_->MaxPoolForward(shape, batch, s.In(x, batch * shape.input.elements()),
                            s.Out(winners, outputs), s.Out(y, outputs));
  }
  void MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners, const float* dy,
                       float* dx) override {
    Stage s(*device_);
    const size_t outputs = batch * shape.output().elements();
    device_->MaxPoolBackward(shape, batch, s.In(winners, outputs), s.In(dy, outputs),
                             s.Out(dx, batch * shape.input.elements()));
  }
  void AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) override {
    Stage s(*device_);
    device_->AvgPoolForward(shape, batch, s.In(x, batch * shape.input.elements()),
                            s.Out(y, batch * shape.output().elements()));
  }
  void AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy, float* dx) override {
    Stage s(*device_);
    device_->AvgPoolBackward(shape, batch, s.In(dy, batch * shape.output().elements()),
                             s.Out(dx, batch * shape.input.elements()));
  }

  void ReluForward(size_t count, const float* x, float* y) override {
    Forward(&Backend::ReluForward, count, x, y);
  }
  void ReluBackward(size_t count, const float* y, const float* dy, float* dx) override {
    Backward(&Backend::ReluBackward, count, y, dy, dx);
  }
  void GeluForward(size_t count, const float* x, float* y) override {
    Forward(&Backend::GeluForward, count, x, y);
  }
  void GeluBackward(size_t count, const float* x, const float* dy, float* dx) override {
    Backward(&Backend::GeluBackward, count, x, dy, dx);
  }
  void TanhGeluForward(size_t count, const float* x, float* y) override {
    Forward(&Backend::TanhGeluForward, count, x, y);
  }
  void TanhGeluBackward(size_t count, const float* x, const float* dy, float* dx) override {
    Backward(&Backend::TanhGeluBackward, count, x, dy, dx);
  }
  void TanhForward(size_t count, const float* x, float* y) override {
    Forward(&Backend::TanhForward, count, x, y);
  }
  void TanhBackward(size_t count, const float* y, const float* dy, float* dx) override {
    Backward(&Backend::TanhBackward, count, y, dy, dx);
  }
  void Relu6Forward(size_t count, const float* x, float* y) override {
    Forward(&Backend::Relu6Forward, count, x, y);
  }
  void Relu6Backward(size_t count, const float* y, const float* dy, float* dx) override {
    Backward(&Backend::Relu6Backward, count, y, dy, dx);
  }
  void SiluForward(size_t count, const float* x, float* y) override {
    Forward(&Backend::SiluForward, count, x, y);
  }
  void SiluBackward(size_t count, const float* x, const float* dy, float* dx) override {
    Backward(&Backend::SiluBackward, count, x, dy, dx);
  }
  void DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x, float* mask,
                      float* y) override {
    Stage s(*device_);
    device_->DropoutForward(count, rate, key, s.In(x, count), s.Out(mask, count), s.Out(y, count));
  }

  void BatchNormForward(const BatchNormOptions& options, const BatchNormWeights& weights,
                        const float* x, float* saved, float* batch_mean, float* batch_var,
                        float* y) override {
    Stage s(*device_);
    const size_t all = options.rows * options.columns;
    device_->BatchNormForward(options, There(s, options, weights), s.In(x, all),
                              s.Out(saved, 2 * options.columns), s.Out(batch_mean, options.columns),
                              s.Out(batch_var, options.columns), s.Out(y, all));
  }
  void BatchNormInference(const BatchNormOptions& options, const BatchNormWeights& weights,
                          const float* x, float* y) override {
    Stage s(*device_);
    const size_t all = options.rows * options.columns;
    device_->BatchNormInference(options, There(s, options, weights), s.In(x, all), s.Out(y, all));
  }
  void BatchNormBackward(const BatchNormOptions& options, const float* gamma, const float* x,
                         const float* saved, const float* dy, float* dgamma, float* dbeta,
                         float* dx) override {
    Stage s(*device_);
    const size_t columns = options.columns;
    const size_t all = options.rows * columns;
    device_->BatchNormBackward(options, s.In(gamma, columns), s.In(x, all),
                               s.In(saved, 2 * columns), s.In(dy, all), s.Out(dgamma, columns),
                               s.Out(dbeta, columns), s.Out(dx, all));
  }

  void GroupNormForward(const GroupNormShape& shape, const float* gamma, const float* beta,
                        const float* x, float* saved, float* y) override {
    Stage s(*device_);
    const size_t all = shape.batch * shape.pixels * shape.channels;
    device_->GroupNormForward(shape, s.In(gamma, shape.channels), s.In(beta, shape.channels),
                              s.In(x, all), s.Out(saved, 2 * shape.means()), s.Out(y, all));
  }
  void GroupNormBackward(const GroupNormShape& shape, const float* gamma, const float* x,
                         const float* saved, const float* dy, float* scratch, float* dgamma,
                         float* dbeta, float* dx) override {
    Stage s(*device_);
    const size_t all = shape.batch * shape.pixels * shape.channels;
    const size_t kept = 2 * shape.means();
    device_->GroupNormBackward(shape, s.In(gamma, shape.channels), s.In(x, all), s.In(saved, kept),
                               s.In(dy, all), s.Out(scratch, kept), s.Out(dgamma, shape.channels),
                               s.Out(dbeta, shape.channels), s.Out(dx, all));
  }

  void EmbedForward(const EmbedShape& shape, const float* tokens, const float* weight,
                    float* y) override {
    Stage s(*device_);
    device_->EmbedForward(shape, s.In(tokens, shape.count),
                          s.In(weight, shape.vocabulary * shape.width),
                          s.Out(y, shape.count * shape.width));
  }
  void EmbedBackward(const EmbedShape& shape, const float* tokens, const float* dy, bool accumulate,
                     float* dweight) override {
    Stage s(*device_);
    device_->EmbedBackward(shape, s.In(tokens, shape.count), s.In(dy, shape.count * shape.width),
                           accumulate, s.Out(dweight, shape.vocabulary * shape.width));
  }
  void Rotate(const AttentionShape& shape, size_t batch, bool back, float* qkv) override {
    Stage s(*device_);
    device_->Rotate(shape, batch, back, s.Out(qkv, Qkv(shape, batch)));
  }
  void AttentionScores(const AttentionShape& shape, size_t batch, const float* qkv,
                       float* p) override {
    Stage s(*device_);
    device_->AttentionScores(shape, batch, s.In(qkv, Qkv(shape, batch)),
                             s.Out(p, batch * shape.weights()));
  }
  void AttentionMix(const AttentionShape& shape, size_t batch, const float* p, const float* qkv,
                    float* y) override {
    Stage s(*device_);
    device_->AttentionMix(shape, batch, s.In(p, batch * shape.weights()),
                          s.In(qkv, Qkv(shape, batch)), s.Out(y, Qkv(shape, batch) / 3));
  }
  void AttentionMixBackward(const AttentionShape& shape, size_t batch, const float* p,
                            const float* qkv, const float* dy, float* dp, float* dqkv) override {
    Stage s(*device_);
    const size_t weights = batch * shape.weights();
    device_->AttentionMixBackward(shape, batch, s.In(p, weights), s.In(qkv, Qkv(shape, batch)),
                                  s.In(dy, Qkv(shape, batch) / 3), s.Out(dp, weights),
                                  s.Out(dqkv, Qkv(shape, batch)));
  }
  void AttentionScoresBackward(const AttentionShape& shape, size_t batch, const float* p,
                               const float* qkv, float* dp, float* dqkv) override {
    Stage s(*device_);
    const size_t weights = batch * shape.weights();
    device_->AttentionScoresBackward(shape, batch, s.In(p, weights), s.In(qkv, Qkv(shape, batch)),
                                     s.Out(dp, weights), s.Out(dqkv, Qkv(shape, batch)));
  }

  void SoftmaxCrossEntropy(const SoftmaxLossShape& shape, const float* scores, const float* labels,
                           LossSum* sum, float* dscores) override {
    Stage s(*device_);
    const size_t count = shape.rows * shape.classes;
    device_->SoftmaxCrossEntropy(shape, s.In(scores, count), s.In(labels, shape.rows), s.Out(sum),
                                 s.Out(dscores, count));
  }
  void Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                float* dscores) override {
    Stage s(*device_);
    device_->Logistic(batch, s.In(scores, batch), s.In(labels, batch), s.Out(sum),
                      s.Out(dscores, batch));
  }
  void Squared(size_t batch, const float* scores, const float* labels, LossSum* sum,
               float* dscores) override {
    Stage s(*device_);
    device_->Squared(batch, s.In(scores, batch), s.In(labels, batch), s.Out(sum),
                     s.Out(dscores, batch));
  }

 protected:
  void Free(float* data) override { std::free(data); }

 private:
  template <typename Kernel>
  void Forward(Kernel kernel, size_t count, const float* x, float* y) {
    Stage s(*device_);
    (device_.get()->*kernel)(count, s.In(x, count), s.Out(y, count));
  }
  template <typename Kernel>
  void Backward(Kernel kernel, size_t count, const float* kept, const float* dy, float* dx) {
    Stage s(*device_);
    (device_.get()->*kernel)(count, s.In(kept, count), s.In(dy, count), s.Out(dx, count));
  }
  static BatchNormWeights There(Stage& s, const BatchNormOptions& options,
                                const BatchNormWeights& weights) {
    const size_t columns = options.columns;
    return {s.In(weights.gamma, columns), s.In(weights.beta, columns),
            s.In(weights.running_mean, columns), s.In(weights.running_var, columns)};
  }

  std::unique_ptr<Backend> device_;
};

}  // namespace

std::unique_ptr<Backend> MakeStagedBackend(std::unique_ptr<Backend> device) {
  return std::make_unique<StagedBackend>(std::move(device));
}

}  // namespace leeway::testing
