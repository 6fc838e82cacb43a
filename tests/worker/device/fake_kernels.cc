// Each kernel: which memory it reads and writes, and the CPU's computation.
#include "common/codec/codec.h"
#include "tests/worker/device/fake_device.h"

namespace leeway::testing {
namespace {

// Returns the number of floats from the first to the last element of a matrix whose rows begin
// `stride` apart; 0: the rows are packed.
size_t Extent(size_t rows, size_t columns, size_t stride) {
  return rows == 0 ? 0 : (rows - 1) * (stride == 0 ? columns : stride) + columns;
}

}  // namespace

BatchNormWeights FakeDevice::Inside(const BatchNormWeights& weights) const {
  return {memory_->Inside(weights.gamma), memory_->Inside(weights.beta),
          memory_->Inside(weights.running_mean), memory_->Inside(weights.running_var)};
}

void FakeDevice::AddDifference(size_t count, float scale, const float* a, const float* b,
                               const float* base, float* out) {
  Kernel("AddDifference",
         {Reads(a, count), Reads(b, count), Reads(base, count), Writes(out, count)}, [=, this] {
           cpu_->AddDifference(count, scale, memory_->Inside(a), memory_->Inside(b),
                               memory_->Inside(base), memory_->Inside(out));
         });
}

void FakeDevice::Update(const VectorUpdate& update, float* finite) {
  const size_t count = update.count;
  std::vector<Access> accesses = {Reads(update.contribution, count), Reads(update.weights, count),
                                  Writes(update.weights, count), Writes(finite)};
  VectorUpdate inside = update;
  if (!first_step_.has_value()) first_step_ = update.step;
  if (update.step.number != first_step_->number && Makes(Mistake::kFrozenStep)) {
    inside.step = *first_step_;
  }
  inside.contribution = memory_->Inside(update.contribution);
  inside.weights = memory_->Inside(update.weights);
  for (float*& slot : inside.slots) {
    accesses.push_back(Reads(slot, count));
    accesses.push_back(Writes(slot, count));
    slot = memory_->Inside(slot);
  }
  Kernel("Update", std::move(accesses),
         [=, this, inside = std::move(inside)] { cpu_->Update(inside, memory_->Inside(finite)); });
}

void FakeDevice::Scale(size_t count, float factor, float* x, float* finite) {
  // The flag keeps its value if all values are finite.
  Kernel("Scale", {Reads(x, count), Writes(x, count), Reads(finite), Writes(finite)},
         [=, this] { cpu_->Scale(count, factor, memory_->Inside(x), memory_->Inside(finite)); });
}

void FakeDevice::Encode(GroupFormat format, size_t count, const float* values, float* residual,
                        float* encoded) {
  const size_t floats = FloatsFor(CodecOf(format).MaxBytes(count));
  Kernel("Encode",
         {Reads(values, count), Reads(residual, count), Writes(residual, count),
          Writes(encoded, floats)},
         [=, this] {
           cpu_->Encode(format, count, memory_->Inside(values), memory_->Inside(residual),
                        memory_->Inside(encoded));
         });
}

void FakeDevice::Fill(size_t count, float value, float* y) {
  Kernel("Fill", {Writes(y, count)}, [=, this] { cpu_->Fill(count, value, memory_->Inside(y)); });
}

void FakeDevice::Copy(size_t count, const float* x, float* y) {
  Kernel("Copy", {Reads(x, count), Writes(y, count)},
         [=, this] { cpu_->Copy(count, memory_->Inside(x), memory_->Inside(y)); });
}

void FakeDevice::CopyColumns(const ColumnCopy& shape, const float* x, float* y) {
  // The memory between the columns that it writes belongs to others and stays unchanged: each row
  // is an access of its own.
  std::vector<Access> accesses = {Reads(x, Extent(shape.rows, shape.columns, shape.from_stride))};
  for (size_t row = 0; row < shape.rows; ++row) {
    accesses.push_back(Writes(y + row * shape.to_stride, shape.columns));
  }
  Kernel("CopyColumns", std::move(accesses),
         [=, this] { cpu_->CopyColumns(shape, memory_->Inside(x), memory_->Inside(y)); });
}

void FakeDevice::Multiply(size_t count, const float* x, const float* y, float* z) {
  Kernel("Multiply", {Reads(x, count), Reads(y, count), Writes(z, count)}, [=, this] {
    cpu_->Multiply(count, memory_->Inside(x), memory_->Inside(y), memory_->Inside(z));
  });
}

void FakeDevice::FillRows(size_t rows, size_t columns, const float* row, float* y) {
  Kernel("FillRows", {Reads(row, columns), Writes(y, rows * columns)},
         [=, this] { cpu_->FillRows(rows, columns, memory_->Inside(row), memory_->Inside(y)); });
}

void FakeDevice::AddRows(size_t rows, size_t columns, const float* row, float* y) {
  Kernel("AddRows", {Reads(row, columns), Reads(y, rows * columns), Writes(y, rows * columns)},
         [=, this] { cpu_->AddRows(rows, columns, memory_->Inside(row), memory_->Inside(y)); });
}

void FakeDevice::SumRows(size_t rows, size_t columns, const float* x, float* sum) {
  Kernel("SumRows", {Reads(x, rows * columns), Writes(sum, columns)},
         [=, this] { cpu_->SumRows(rows, columns, memory_->Inside(x), memory_->Inside(sum)); });
}

void FakeDevice::Gemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
                      bool accumulate, float* c) {
  const auto [m, n, k, a_stride, b_stride, c_stride] = shape;
  const size_t extent_a = op_a == Op::kAsIs ? Extent(m, k, a_stride) : Extent(k, m, a_stride);
  const size_t extent_b = op_b == Op::kAsIs ? Extent(k, n, b_stride) : Extent(n, k, b_stride);
  std::vector<Access> accesses = {Reads(a, extent_a), Reads(b, extent_b),
                                  Writes(c, Extent(m, n, c_stride))};
  if (accumulate) accesses.push_back(Reads(c, Extent(m, n, c_stride)));
  Kernel("Gemm", std::move(accesses), [=, this] {
    cpu_->Gemm(shape, op_a, memory_->Inside(a), op_b, memory_->Inside(b), accumulate,
               memory_->Inside(c));
  });
}

size_t FakeDevice::Conv2dScratch(const Conv2dShape& shape, size_t batch) const {
  return cpu_->Conv2dScratch(shape, batch);
}

void FakeDevice::Conv2dForward(const Conv2dShape& shape, size_t batch, const float* x,
                               const float* weight, const float* bias, float* scratch, float* y) {
  Kernel("Conv2dForward",
         {Reads(x, batch * shape.input.elements()), Reads(weight, shape.patch() * shape.filters),
          Reads(bias, shape.filters), Writes(scratch, Conv2dScratch(shape, batch)),
          Writes(y, batch * shape.output().elements())},
         [=, this] {
           cpu_->Conv2dForward(shape, batch, memory_->Inside(x), memory_->Inside(weight),
                               memory_->Inside(bias), memory_->Inside(scratch), memory_->Inside(y));
         });
}

void FakeDevice::Conv2dBackward(const Conv2dShape& shape, size_t batch, const float* x,
                                const float* weight, const float* dy, float* scratch,
                                float* dweight, float* dbias, float* dx) {
  Kernel(
      "Conv2dBackward",
      {Reads(x, batch * shape.input.elements()), Reads(weight, shape.patch() * shape.filters),
       Reads(dy, batch * shape.output().elements()), Writes(scratch, Conv2dScratch(shape, batch)),
       Writes(dweight, shape.patch() * shape.filters), Writes(dbias, shape.filters),
       Writes(dx, batch * shape.input.elements())},
      [=, this] {
        cpu_->Conv2dBackward(shape, batch, memory_->Inside(x), memory_->Inside(weight),
                             memory_->Inside(dy), memory_->Inside(scratch),
                             memory_->Inside(dweight), memory_->Inside(dbias), memory_->Inside(dx));
      });
}

void FakeDevice::DepthwiseForward(const Conv2dShape& shape, size_t batch, const float* x,
                                  const float* weight, const float* bias, float* y) {
  const size_t taps = size_t{shape.kernel} * shape.kernel;
  Kernel("DepthwiseForward",
         {Reads(x, batch * shape.input.elements()), Reads(weight, taps * shape.filters),
          Reads(bias, shape.filters), Writes(y, batch * shape.output().elements())},
         [=, this] {
           cpu_->DepthwiseForward(shape, batch, memory_->Inside(x), memory_->Inside(weight),
                                  memory_->Inside(bias), memory_->Inside(y));
         });
}

void FakeDevice::DepthwiseBackward(const Conv2dShape& shape, size_t batch, const float* x,
                                   const float* weight, const float* dy, float* dweight,
                                   float* dx) {
  const size_t taps = size_t{shape.kernel} * shape.kernel;
  Kernel("DepthwiseBackward",
         {Reads(x, batch * shape.input.elements()), Reads(weight, taps * shape.filters),
          Reads(dy, batch * shape.output().elements()), Writes(dweight, taps * shape.filters),
          Writes(dx, batch * shape.input.elements())},
         [=, this] {
           cpu_->DepthwiseBackward(shape, batch, memory_->Inside(x), memory_->Inside(weight),
                                   memory_->Inside(dy), memory_->Inside(dweight),
                                   memory_->Inside(dx));
         });
}

void FakeDevice::MaxPoolForward(const PoolShape& shape, size_t batch, const float* x,
                                float* winners, float* y) {
  Kernel(
      "MaxPoolForward",
      {Reads(x, batch * shape.input.elements()), Writes(winners, batch * shape.output().elements()),
       Writes(y, batch * shape.output().elements())},
      [=, this] {
        cpu_->MaxPoolForward(shape, batch, memory_->Inside(x), memory_->Inside(winners),
                             memory_->Inside(y));
      });
}

void FakeDevice::MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners,
                                 const float* dy, float* dx) {
  Kernel("MaxPoolBackward",
         {Reads(winners, batch * shape.output().elements()),
          Reads(dy, batch * shape.output().elements()), Writes(dx, batch * shape.input.elements())},
         [=, this] {
           cpu_->MaxPoolBackward(shape, batch, memory_->Inside(winners), memory_->Inside(dy),
                                 memory_->Inside(dx));
         });
}

void FakeDevice::AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) {
  Kernel("AvgPoolForward",
         {Reads(x, batch * shape.input.elements()), Writes(y, batch * shape.output().elements())},
         [=, this] { cpu_->AvgPoolForward(shape, batch, memory_->Inside(x), memory_->Inside(y)); });
}

void FakeDevice::AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy, float* dx) {
  Kernel(
      "AvgPoolBackward",
      {Reads(dy, batch * shape.output().elements()), Writes(dx, batch * shape.input.elements())},
      [=, this] { cpu_->AvgPoolBackward(shape, batch, memory_->Inside(dy), memory_->Inside(dx)); });
}

void FakeDevice::ReluForward(size_t count, const float* x, float* y) {
  Kernel("ReluForward", {Reads(x, count), Writes(y, count)},
         [=, this] { cpu_->ReluForward(count, memory_->Inside(x), memory_->Inside(y)); });
}

void FakeDevice::ReluBackward(size_t count, const float* y, const float* dy, float* dx) {
  Kernel("ReluBackward", {Reads(y, count), Reads(dy, count), Writes(dx, count)}, [=, this] {
    cpu_->ReluBackward(count, memory_->Inside(y), memory_->Inside(dy), memory_->Inside(dx));
  });
}

void FakeDevice::GeluForward(size_t count, const float* x, float* y) {
  Kernel("GeluForward", {Reads(x, count), Writes(y, count)},
         [=, this] { cpu_->GeluForward(count, memory_->Inside(x), memory_->Inside(y)); });
}

void FakeDevice::GeluBackward(size_t count, const float* x, const float* dy, float* dx) {
  Kernel("GeluBackward", {Reads(x, count), Reads(dy, count), Writes(dx, count)}, [=, this] {
    cpu_->GeluBackward(count, memory_->Inside(x), memory_->Inside(dy), memory_->Inside(dx));
  });
}

void FakeDevice::TanhGeluForward(size_t count, const float* x, float* y) {
  Kernel("TanhGeluForward", {Reads(x, count), Writes(y, count)},
         [=, this] { cpu_->TanhGeluForward(count, memory_->Inside(x), memory_->Inside(y)); });
}

void FakeDevice::TanhGeluBackward(size_t count, const float* x, const float* dy, float* dx) {
  Kernel("TanhGeluBackward", {Reads(x, count), Reads(dy, count), Writes(dx, count)}, [=, this] {
    cpu_->TanhGeluBackward(count, memory_->Inside(x), memory_->Inside(dy), memory_->Inside(dx));
  });
}

void FakeDevice::TanhForward(size_t count, const float* x, float* y) {
  Kernel("TanhForward", {Reads(x, count), Writes(y, count)},
         [=, this] { cpu_->TanhForward(count, memory_->Inside(x), memory_->Inside(y)); });
}

void FakeDevice::TanhBackward(size_t count, const float* y, const float* dy, float* dx) {
  Kernel("TanhBackward", {Reads(y, count), Reads(dy, count), Writes(dx, count)}, [=, this] {
    cpu_->TanhBackward(count, memory_->Inside(y), memory_->Inside(dy), memory_->Inside(dx));
  });
}

void FakeDevice::Relu6Forward(size_t count, const float* x, float* y) {
  Kernel("Relu6Forward", {Reads(x, count), Writes(y, count)},
         [=, this] { cpu_->Relu6Forward(count, memory_->Inside(x), memory_->Inside(y)); });
}

void FakeDevice::Relu6Backward(size_t count, const float* y, const float* dy, float* dx) {
  Kernel("Relu6Backward", {Reads(y, count), Reads(dy, count), Writes(dx, count)}, [=, this] {
    cpu_->Relu6Backward(count, memory_->Inside(y), memory_->Inside(dy), memory_->Inside(dx));
  });
}

void FakeDevice::SiluForward(size_t count, const float* x, float* y) {
  Kernel("SiluForward", {Reads(x, count), Writes(y, count)},
         [=, this] { cpu_->SiluForward(count, memory_->Inside(x), memory_->Inside(y)); });
}

void FakeDevice::SiluBackward(size_t count, const float* x, const float* dy, float* dx) {
  Kernel("SiluBackward", {Reads(x, count), Reads(dy, count), Writes(dx, count)}, [=, this] {
    cpu_->SiluBackward(count, memory_->Inside(x), memory_->Inside(dy), memory_->Inside(dx));
  });
}

void FakeDevice::DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x,
                                float* mask, float* y) {
  DropoutKey drawn = key;
  if (!first_draw_.has_value()) first_draw_ = key.stream;
  if (key.stream != *first_draw_ && Makes(Mistake::kFrozenStep)) drawn.stream = *first_draw_;
  Kernel("DropoutForward", {Reads(x, count), Writes(mask, count), Writes(y, count)}, [=, this] {
    cpu_->DropoutForward(count, rate, drawn, memory_->Inside(x), memory_->Inside(mask),
                         memory_->Inside(y));
  });
}

void FakeDevice::BatchNormForward(const BatchNormOptions& options, const BatchNormWeights& weights,
                                  const float* x, float* saved, float* batch_mean, float* batch_var,
                                  float* y) {
  Kernel("BatchNormForward",
         {Reads(weights.gamma, options.columns), Reads(weights.beta, options.columns),
          Reads(x, options.rows * options.columns), Writes(saved, 2 * options.columns),
          Writes(batch_mean, options.columns), Writes(batch_var, options.columns),
          Writes(y, options.rows * options.columns)},
         [=, this] {
           cpu_->BatchNormForward(options, Inside(weights), memory_->Inside(x),
                                  memory_->Inside(saved), memory_->Inside(batch_mean),
                                  memory_->Inside(batch_var), memory_->Inside(y));
         });
}

void FakeDevice::BatchNormInference(const BatchNormOptions& options,
                                    const BatchNormWeights& weights, const float* x, float* y) {
  Kernel("BatchNormInference",
         {Reads(weights.gamma, options.columns), Reads(weights.beta, options.columns),
          Reads(weights.running_mean, options.columns), Reads(weights.running_var, options.columns),
          Reads(x, options.rows * options.columns), Writes(y, options.rows * options.columns)},
         [=, this] {
           cpu_->BatchNormInference(options, Inside(weights), memory_->Inside(x),
                                    memory_->Inside(y));
         });
}

void FakeDevice::BatchNormBackward(const BatchNormOptions& options, const float* gamma,
                                   const float* x, const float* saved, const float* dy,
                                   float* dgamma, float* dbeta, float* dx) {
  Kernel("BatchNormBackward",
         {Reads(gamma, options.columns), Reads(x, options.rows * options.columns),
          Reads(saved, 2 * options.columns), Reads(dy, options.rows * options.columns),
          Writes(dgamma, options.columns), Writes(dbeta, options.columns),
          Writes(dx, options.rows * options.columns)},
         [=, this] {
           cpu_->BatchNormBackward(options, memory_->Inside(gamma), memory_->Inside(x),
                                   memory_->Inside(saved), memory_->Inside(dy),
                                   memory_->Inside(dgamma), memory_->Inside(dbeta),
                                   memory_->Inside(dx));
         });
}

void FakeDevice::GroupNormForward(const GroupNormShape& shape, const float* gamma,
                                  const float* beta, const float* x, float* saved, float* y) {
  const size_t count = shape.batch * shape.pixels * shape.channels;
  Kernel("GroupNormForward",
         {Reads(gamma, shape.channels), Reads(beta, shape.channels), Reads(x, count),
          Writes(saved, 2 * shape.means()), Writes(y, count)},
         [=, this] {
           cpu_->GroupNormForward(shape, memory_->Inside(gamma), memory_->Inside(beta),
                                  memory_->Inside(x), memory_->Inside(saved), memory_->Inside(y));
         });
}

void FakeDevice::GroupNormBackward(const GroupNormShape& shape, const float* gamma, const float* x,
                                   const float* saved, const float* dy, float* scratch,
                                   float* dgamma, float* dbeta, float* dx) {
  const size_t count = shape.batch * shape.pixels * shape.channels;
  Kernel("GroupNormBackward",
         {Reads(gamma, shape.channels), Reads(x, count), Reads(saved, 2 * shape.means()),
          Reads(dy, count), Writes(scratch, 2 * shape.means()), Writes(dgamma, shape.channels),
          Writes(dbeta, shape.channels), Writes(dx, count)},
         [=, this] {
           cpu_->GroupNormBackward(shape, memory_->Inside(gamma), memory_->Inside(x),
                                   memory_->Inside(saved), memory_->Inside(dy),
                                   memory_->Inside(scratch), memory_->Inside(dgamma),
                                   memory_->Inside(dbeta), memory_->Inside(dx));
         });
}

void FakeDevice::EmbedForward(const EmbedShape& shape, const float* tokens, const float* weight,
                              float* y) {
  Kernel("EmbedForward",
         {Reads(tokens, shape.count), Reads(weight, shape.vocabulary * shape.width),
          Writes(y, shape.count * shape.width)},
         [=, this] {
           cpu_->EmbedForward(shape, memory_->Inside(tokens), memory_->Inside(weight),
                              memory_->Inside(y));
         });
}

void FakeDevice::EmbedBackward(const EmbedShape& shape, const float* tokens, const float* dy,
                               bool accumulate, float* dweight) {
  const size_t table = shape.vocabulary * shape.width;
  std::vector<Access> accesses = {Reads(tokens, shape.count), Reads(dy, shape.count * shape.width),
                                  Writes(dweight, table)};
  if (accumulate) accesses.push_back(Reads(dweight, table));
  Kernel("EmbedBackward", std::move(accesses), [=, this] {
    cpu_->EmbedBackward(shape, memory_->Inside(tokens), memory_->Inside(dy), accumulate,
                        memory_->Inside(dweight));
  });
}

void FakeDevice::WritesColumns(const AttentionShape& shape, size_t batch, size_t part, size_t parts,
                               float* qkv, std::vector<Access>& accesses) {
  for (size_t row = 0; row < batch * shape.positions; ++row) {
    accesses.push_back(
        Writes(qkv + row * shape.qkv() + part * shape.channels(), parts * shape.channels()));
  }
}

void FakeDevice::Rotate(const AttentionShape& shape, size_t batch, bool back, float* qkv) {
  std::vector<Access> accesses;
  WritesColumns(shape, batch, 0, 2, qkv, accesses);
  // It reads them before it writes them.
  for (size_t row = 0; row < batch * shape.positions; ++row) {
    accesses.push_back(Reads(qkv + row * shape.qkv(), 2 * shape.channels()));
  }
  Kernel("Rotate", std::move(accesses),
         [=, this] { cpu_->Rotate(shape, batch, back, memory_->Inside(qkv)); });
}

void FakeDevice::AttentionScores(const AttentionShape& shape, size_t batch, const float* qkv,
                                 float* p) {
  Kernel(
      "AttentionScores",
      {Reads(qkv, batch * shape.positions * shape.qkv()), Writes(p, batch * shape.weights())},
      [=, this] { cpu_->AttentionScores(shape, batch, memory_->Inside(qkv), memory_->Inside(p)); });
}

void FakeDevice::AttentionMix(const AttentionShape& shape, size_t batch, const float* p,
                              const float* qkv, float* y) {
  Kernel("AttentionMix",
         {Reads(p, batch * shape.weights()), Reads(qkv, batch * shape.positions * shape.qkv()),
          Writes(y, batch * shape.positions * shape.channels())},
         [=, this] {
           cpu_->AttentionMix(shape, batch, memory_->Inside(p), memory_->Inside(qkv),
                              memory_->Inside(y));
         });
}

void FakeDevice::AttentionMixBackward(const AttentionShape& shape, size_t batch, const float* p,
                                      const float* qkv, const float* dy, float* dp, float* dqkv) {
  std::vector<Access> accesses = {
      Reads(p, batch * shape.weights()), Reads(qkv, batch * shape.positions * shape.qkv()),
      Reads(dy, batch * shape.positions * shape.channels()), Writes(dp, batch * shape.weights())};
  WritesColumns(shape, batch, 2, 1, dqkv, accesses);
  Kernel("AttentionMixBackward", std::move(accesses), [=, this] {
    cpu_->AttentionMixBackward(shape, batch, memory_->Inside(p), memory_->Inside(qkv),
                               memory_->Inside(dy), memory_->Inside(dp), memory_->Inside(dqkv));
  });
}

void FakeDevice::AttentionScoresBackward(const AttentionShape& shape, size_t batch, const float* p,
                                         const float* qkv, float* dp, float* dqkv) {
  const size_t weights = batch * shape.weights();
  std::vector<Access> accesses = {Reads(p, weights),
                                  Reads(qkv, batch * shape.positions * shape.qkv()),
                                  Reads(dp, weights), Writes(dp, weights)};
  WritesColumns(shape, batch, 0, 2, dqkv, accesses);
  Kernel("AttentionScoresBackward", std::move(accesses), [=, this] {
    cpu_->AttentionScoresBackward(shape, batch, memory_->Inside(p), memory_->Inside(qkv),
                                  memory_->Inside(dp), memory_->Inside(dqkv));
  });
}

void FakeDevice::SoftmaxCrossEntropy(const SoftmaxLossShape& shape, const float* scores,
                                     const float* labels, LossSum* sum, float* dscores) {
  const size_t count = shape.rows * shape.classes;
  Kernel("SoftmaxCrossEntropy",
         {Reads(scores, count), Reads(labels, shape.rows), Writes(sum), Writes(dscores, count)},
         [=, this] {
           cpu_->SoftmaxCrossEntropy(shape, memory_->Inside(scores), memory_->Inside(labels),
                                     memory_->Inside(sum), memory_->Inside(dscores));
         });
}

void FakeDevice::Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                          float* dscores) {
  Kernel("Logistic",
         {Reads(scores, batch), Reads(labels, batch), Writes(sum), Writes(dscores, batch)},
         [=, this] {
           cpu_->Logistic(batch, memory_->Inside(scores), memory_->Inside(labels),
                          memory_->Inside(sum), memory_->Inside(dscores));
         });
}

void FakeDevice::Squared(size_t batch, const float* scores, const float* labels, LossSum* sum,
                         float* dscores) {
  Kernel("Squared",
         {Reads(scores, batch), Reads(labels, batch), Writes(sum), Writes(dscores, batch)},
         [=, this] {
           cpu_->Squared(batch, memory_->Inside(scores), memory_->Inside(labels),
                         memory_->Inside(sum), memory_->Inside(dscores));
         });
}

}  // namespace leeway::testing
