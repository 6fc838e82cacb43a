// A backend that wraps another. This file says once which memory each kernel reads and writes, so
// that a wrapper only says what it does around every kernel.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "worker/compute/backend.h"

namespace leeway::testing {

// The memory that a kernel uses through one pointer: a matrix of floats that begins `first` floats
// after the pointer. If the kernel leaves the memory between the rows alone, other work may use it
// at the same time.
struct Operand {
  void* data = nullptr;
  bool read = false;
  bool written = false;
  size_t columns = 0;
  size_t rows = 1;
  // The distance between the beginnings of two rows.
  size_t stride = 0;
  size_t first = 0;

  // Returns the number of floats from the pointer to the end of the memory.
  size_t extent() const { return rows == 0 ? 0 : first + (rows - 1) * stride + columns; }
};

// Where the wrapped backend finds the operands of a kernel.
class Places {
 public:
  explicit Places(std::function<void*(void* data)> find) : find_(std::move(find)) {}

  template <typename T>
  T* Of(T* data) const {
    using Plain = std::remove_const_t<T>;
    return data == nullptr ? nullptr : static_cast<T*>(find_(const_cast<Plain*>(data)));
  }

 private:
  std::function<void*(void* data)> find_;
};

class WrappedBackend : public Backend {
 public:
  void AddDifference(size_t count, float scale, const float* a, const float* b, const float* base,
                     float* out) override {
    Relay("AddDifference", &Backend::AddDifference, count, scale, In(a, count), In(b, count),
          In(base, count), Out(out, count));
  }
  void Update(const VectorUpdate& update, float* finite) override;
  // The flag keeps its value if all values are finite.
  void Scale(size_t count, float factor, float* x, float* finite) override {
    Relay("Scale", &Backend::Scale, count, factor, InOut(x, count), InOut(finite, 1));
  }
  void Encode(GroupFormat format, size_t count, const float* values, float* residual,
              float* encoded) override;

  void Fill(size_t count, float value, float* y) override {
    Relay("Fill", &Backend::Fill, count, value, Out(y, count));
  }
  void Copy(size_t count, const float* x, float* y) override {
    Relay("Copy", &Backend::Copy, count, In(x, count), Out(y, count));
  }
  void CopyColumns(const ColumnCopy& shape, const float* x, float* y) override {
    Relay("CopyColumns", &Backend::CopyColumns, shape,
          In(x, Extent(shape.rows, shape.columns, shape.from_stride)),
          Rows(Out(y, shape.columns), shape.rows, shape.to_stride));
  }
  void Multiply(size_t count, const float* x, const float* y, float* z) override {
    Relay("Multiply", &Backend::Multiply, count, In(x, count), In(y, count), Out(z, count));
  }
  void FillRows(size_t rows, size_t columns, const float* row, float* y) override {
    Relay("FillRows", &Backend::FillRows, rows, columns, In(row, columns), Out(y, rows * columns));
  }
  void AddRows(size_t rows, size_t columns, const float* row, float* y) override {
    Relay("AddRows", &Backend::AddRows, rows, columns, In(row, columns), InOut(y, rows * columns));
  }
  void SumRows(size_t rows, size_t columns, const float* x, float* sum) override {
    Relay("SumRows", &Backend::SumRows, rows, columns, In(x, rows * columns), Out(sum, columns));
  }

  void Gemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
            bool accumulate, float* c) override {
    const auto [m, n, k, a_stride, b_stride, c_stride] = shape;
    const size_t of_a = op_a == Op::kAsIs ? Extent(m, k, a_stride) : Extent(k, m, a_stride);
    const size_t of_b = op_b == Op::kAsIs ? Extent(k, n, b_stride) : Extent(n, k, b_stride);
    const size_t of_c = Extent(m, n, c_stride);
    Relay("Gemm", &Backend::Gemm, shape, op_a, In(a, of_a), op_b, In(b, of_b), accumulate,
          accumulate ? InOut(c, of_c) : Out(c, of_c));
  }
  size_t Conv2dScratch(const Conv2dShape& shape, size_t batch) const override {
    return wrapped_->Conv2dScratch(shape, batch);
  }
  void Conv2dForward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                     const float* bias, float* scratch, float* y) override {
    Relay("Conv2dForward", &Backend::Conv2dForward, shape, batch,
          In(x, batch * shape.input.elements()), In(weight, shape.patch() * shape.filters),
          In(bias, shape.filters), Out(scratch, Conv2dScratch(shape, batch)),
          Out(y, batch * shape.output().elements()));
  }
  void Conv2dBackward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                      const float* dy, float* scratch, float* dweight, float* dbias,
                      float* dx) override {
    const size_t weights = shape.patch() * shape.filters;
    Relay("Conv2dBackward", &Backend::Conv2dBackward, shape, batch,
          In(x, batch * shape.input.elements()), In(weight, weights),
          In(dy, batch * shape.output().elements()), Out(scratch, Conv2dScratch(shape, batch)),
          Out(dweight, weights), Out(dbias, shape.filters),
          Out(dx, batch * shape.input.elements()));
  }
  void DepthwiseForward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                        const float* bias, float* y) override {
    const size_t weights = size_t{shape.kernel} * shape.kernel * shape.filters;
    Relay("DepthwiseForward", &Backend::DepthwiseForward, shape, batch,
          In(x, batch * shape.input.elements()), In(weight, weights), In(bias, shape.filters),
          Out(y, batch * shape.output().elements()));
  }
  void DepthwiseBackward(const Conv2dShape& shape, size_t batch, const float* x,
                         const float* weight, const float* dy, float* dweight, float* dx) override {
    const size_t weights = size_t{shape.kernel} * shape.kernel * shape.filters;
    Relay("DepthwiseBackward", &Backend::DepthwiseBackward, shape, batch,
          In(x, batch * shape.input.elements()), In(weight, weights),
          In(dy, batch * shape.output().elements()), Out(dweight, weights),
          Out(dx, batch * shape.input.elements()));
  }

  void MaxPoolForward(const PoolShape& shape, size_t batch, const float* x, float* winners,
                      float* y) override {
    const size_t outputs = batch * shape.output().elements();
    Relay("MaxPoolForward", &Backend::MaxPoolForward, shape, batch,
          In(x, batch * shape.input.elements()), Out(winners, outputs), Out(y, outputs));
  }
  void MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners, const float* dy,
                       float* dx) override {
    const size_t outputs = batch * shape.output().elements();
    Relay("MaxPoolBackward", &Backend::MaxPoolBackward, shape, batch, In(winners, outputs),
          In(dy, outputs), Out(dx, batch * shape.input.elements()));
  }
  void AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) override {
    Relay("AvgPoolForward", &Backend::AvgPoolForward, shape, batch,
          In(x, batch * shape.input.elements()), Out(y, batch * shape.output().elements()));
  }
  void AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy, float* dx) override {
    Relay("AvgPoolBackward", &Backend::AvgPoolBackward, shape, batch,
          In(dy, batch * shape.output().elements()), Out(dx, batch * shape.input.elements()));
  }

  void ActivationForward(Activation activation, size_t count, const float* x, float* y) override {
    Relay("ActivationForward", &Backend::ActivationForward, activation, count, In(x, count),
          Out(y, count));
  }
  void ActivationBackward(Activation activation, size_t count, const float* kept, const float* dy,
                          float* dx) override {
    Relay("ActivationBackward", &Backend::ActivationBackward, activation, count, In(kept, count),
          In(dy, count), Out(dx, count));
  }
  void DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x, float* mask,
                      float* y) override {
    Relay("DropoutForward", &Backend::DropoutForward, count, rate, key, In(x, count),
          Out(mask, count), Out(y, count));
  }

  void BatchNormForward(const BatchNormOptions& options, const BatchNormWeights& weights,
                        const float* x, float* saved, float* batch_mean, float* batch_var,
                        float* y) override;
  void BatchNormInference(const BatchNormOptions& options, const BatchNormWeights& weights,
                          const float* x, float* y) override;
  void BatchNormBackward(const BatchNormOptions& options, const float* gamma, const float* x,
                         const float* saved, const float* dy, float* dgamma, float* dbeta,
                         float* dx) override {
    const auto& [rows, columns, epsilon] = options;
    Relay("BatchNormBackward", &Backend::BatchNormBackward, options, In(gamma, columns),
          In(x, rows * columns), In(saved, 2 * columns), In(dy, rows * columns),
          Out(dgamma, columns), Out(dbeta, columns), Out(dx, rows * columns));
  }
  void GroupNormForward(const GroupNormShape& shape, const float* gamma, const float* beta,
                        const float* x, float* saved, float* y) override {
    const size_t count = shape.batch * shape.pixels * shape.channels;
    Relay("GroupNormForward", &Backend::GroupNormForward, shape, In(gamma, shape.channels),
          In(beta, shape.channels), In(x, count), Out(saved, 2 * shape.means()), Out(y, count));
  }
  void GroupNormBackward(const GroupNormShape& shape, const float* gamma, const float* x,
                         const float* saved, const float* dy, float* scratch, float* dgamma,
                         float* dbeta, float* dx) override {
    const size_t count = shape.batch * shape.pixels * shape.channels;
    const size_t kept = 2 * shape.means();
    Relay("GroupNormBackward", &Backend::GroupNormBackward, shape, In(gamma, shape.channels),
          In(x, count), In(saved, kept), In(dy, count), Out(scratch, kept),
          Out(dgamma, shape.channels), Out(dbeta, shape.channels), Out(dx, count));
  }

  void EmbedForward(const EmbedShape& shape, const float* tokens, const float* weight,
                    float* y) override {
    Relay("EmbedForward", &Backend::EmbedForward, shape, In(tokens, shape.count),
          In(weight, shape.vocabulary * shape.width), Out(y, shape.count * shape.width));
  }
  void EmbedBackward(const EmbedShape& shape, const float* tokens, const float* dy, bool accumulate,
                     float* dweight) override {
    const size_t table = shape.vocabulary * shape.width;
    Relay("EmbedBackward", &Backend::EmbedBackward, shape, In(tokens, shape.count),
          In(dy, shape.count * shape.width), accumulate,
          accumulate ? InOut(dweight, table) : Out(dweight, table));
  }
  void Rotate(const AttentionShape& shape, size_t batch, bool back, float* qkv) override {
    Relay("Rotate", &Backend::Rotate, shape, batch, back,
          Rows(InOut(qkv, 2 * shape.channels()), batch * shape.positions, shape.qkv()));
  }
  void AttentionScores(const AttentionShape& shape, size_t batch, const float* qkv,
                       float* p) override {
    Relay("AttentionScores", &Backend::AttentionScores, shape, batch,
          In(qkv, batch * shape.positions * shape.qkv()), Out(p, batch * shape.weights()));
  }
  void AttentionMix(const AttentionShape& shape, size_t batch, const float* p, const float* qkv,
                    float* y) override {
    Relay("AttentionMix", &Backend::AttentionMix, shape, batch, In(p, batch * shape.weights()),
          In(qkv, batch * shape.positions * shape.qkv()),
          Out(y, batch * shape.positions * shape.channels()));
  }
  void AttentionMixBackward(const AttentionShape& shape, size_t batch, const float* p,
                            const float* qkv, const float* dy, float* dp, float* dqkv) override {
    const size_t positions = batch * shape.positions;
    Operand values = Rows(Out(dqkv, shape.channels()), positions, shape.qkv());
    values.first = 2 * shape.channels();
    Relay("AttentionMixBackward", &Backend::AttentionMixBackward, shape, batch,
          In(p, batch * shape.weights()), In(qkv, positions * shape.qkv()),
          In(dy, positions * shape.channels()), Out(dp, batch * shape.weights()), values);
  }
  void AttentionScoresBackward(const AttentionShape& shape, size_t batch, const float* p,
                               const float* qkv, float* dp, float* dqkv) override {
    const size_t positions = batch * shape.positions;
    Relay("AttentionScoresBackward", &Backend::AttentionScoresBackward, shape, batch,
          In(p, batch * shape.weights()), In(qkv, positions * shape.qkv()),
          InOut(dp, batch * shape.weights()),
          Rows(Out(dqkv, 2 * shape.channels()), positions, shape.qkv()));
  }

  void SoftmaxCrossEntropy(const SoftmaxLossShape& shape, const float* scores, const float* labels,
                           LossSum* sum, float* dscores) override {
    const size_t count = shape.rows * shape.classes;
    Relay("SoftmaxCrossEntropy", &Backend::SoftmaxCrossEntropy, shape, In(scores, count),
          In(labels, shape.rows), Out(sum), Out(dscores, count));
  }
  void Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                float* dscores) override {
    Relay("Logistic", &Backend::Logistic, batch, In(scores, batch), In(labels, batch), Out(sum),
          Out(dscores, batch));
  }
  void Squared(size_t batch, const float* scores, const float* labels, LossSum* sum,
               float* dscores) override {
    Relay("Squared", &Backend::Squared, batch, In(scores, batch), In(labels, batch), Out(sum),
          Out(dscores, batch));
  }

 protected:
  explicit WrappedBackend(std::unique_ptr<Backend> wrapped) : wrapped_(std::move(wrapped)) {}

  Backend& wrapped() const { return *wrapped_; }

  // Runs a kernel of the wrapped backend, now or later. Operands with a null pointer, which the
  // kernel does not use, are among `operands`.
  using Kernel = std::function<void(const Places& places)>;
  virtual void Run(const char* what, const std::vector<Operand>& operands, Kernel kernel) = 0;

 private:
  static Operand In(const float* data, size_t count) {
    return {.data = const_cast<float*>(data), .read = true, .columns = count};
  }
  static Operand Out(float* data, size_t count) {
    return {.data = data, .written = true, .columns = count};
  }
  static Operand Out(LossSum* sum) {
    return {.data = sum, .written = true, .columns = sizeof(LossSum) / sizeof(float)};
  }
  static Operand InOut(float* data, size_t count) {
    return {.data = data, .read = true, .written = true, .columns = count};
  }
  static Operand Rows(Operand row, size_t rows, size_t stride) {
    row.rows = rows;
    row.stride = stride;
    return row;
  }
  // Returns the number of floats from a matrix's first element to its last. A stride of 0 means
  // that the rows are packed.
  static size_t Extent(size_t rows, size_t columns, size_t stride) {
    return rows == 0 ? 0 : (rows - 1) * (stride == 0 ? columns : stride) + columns;
  }

  template <typename Argument>
  static void Note(const Argument& argument, std::vector<Operand>& operands) {
    if constexpr (std::is_same_v<Argument, Operand>) operands.push_back(argument);
  }
  template <typename Parameter, typename Argument>
  static Parameter Placed(const Argument& argument, const Places& places) {
    if constexpr (std::is_same_v<Argument, Operand>) {
      return static_cast<Parameter>(places.Of(argument.data));
    } else {
      return argument;
    }
  }
  template <typename Family, typename... Parameters, typename... Arguments>
  void Relay(const char* what, void (Family::*kernel)(Parameters...), Arguments... arguments) {
    std::vector<Operand> operands;
    (Note(arguments, operands), ...);
    Run(what, operands, [=, this](const Places& places) {
      ((*wrapped_).*kernel)(Placed<Parameters>(arguments, places)...);
    });
  }

  const std::unique_ptr<Backend> wrapped_;
};

}  // namespace leeway::testing
