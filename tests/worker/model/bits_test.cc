// The same values give the same bits, wherever the buffers are and however often.
#include <cstring>
#include <functional>

#include "common/buffer.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::bits {
namespace {

// Runs a kernel on copies of its inputs that begin `shift` floats past a cache line, and returns
// its outputs.
class Shifted {
 public:
  explicit Shifted(size_t shift) : shift_(shift) {}
  float* In(const std::vector<float>& values) {
    buffers_.emplace_back(values.size() + shift_);
    std::copy(values.begin(), values.end(), buffers_.back().data() + shift_);
    return buffers_.back().data() + shift_;
  }
  float* Out(size_t count) {
    float* out = In(std::vector<float>(count));
    outputs_.push_back({out, count});
    return out;
  }
  std::vector<float> Outputs() const {
    std::vector<float> all;
    for (const auto& output : outputs_) all.insert(all.end(), output.begin(), output.end());
    return all;
  }

 private:
  size_t shift_;
  std::vector<FloatBuffer> buffers_;
  std::vector<std::span<float>> outputs_;
};

void CheckSameBits(const std::function<void(Backend&, Shifted&)>& kernel, uint32_t threads) {
  auto backend = TestBackend(threads);
  std::vector<float> first;
  for (const size_t shift : {0, 0, 1, 2, 3, 4, 5, 7, 9, 13}) {
    Shifted buffers(shift);
    kernel(*backend, buffers);
    const std::vector<float> outputs = buffers.Outputs();
    if (first.empty()) first = outputs;
    CAPTURE(shift);
    REQUIRE(std::memcmp(first.data(), outputs.data(), first.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("a matrix product's bits do not depend on where its operands lie") {
  const uint32_t threads = GENERATE(1u, 3u);
  const GemmShape shape =
      GENERATE(GemmShape{2, 3, 4}, GemmShape{6, 6, 7}, GemmShape{2, 9, 8}, GemmShape{3, 3, 100},
               GemmShape{1, 33, 65}, GemmShape{33, 1, 65}, GemmShape{1, 1, 77},
               GemmShape{2, 2, 300}, GemmShape{67, 35, 129});
  const Op op_a = GENERATE(Op::kAsIs, Op::kTransposed);
  const Op op_b = GENERATE(Op::kAsIs, Op::kTransposed);
  const auto a = RandomValues(shape.m * shape.k, 1);
  const auto b = RandomValues(shape.k * shape.n, 2);
  CAPTURE(shape.m, shape.n, shape.k);
  CheckSameBits(
      [&](Backend& backend, Shifted& at) {
        backend.Gemm(shape, op_a, at.In(a), op_b, at.In(b), false, at.Out(shape.m * shape.n));
      },
      threads);
}

TEST_CASE("convolution and pooling give the same bits wherever their images lie") {
  const uint32_t threads = GENERATE(1u, 3u);
  const Conv2dShape conv{{11, 9, 3}, 5, 3, 2, 1};
  const PoolShape pool{{11, 9, 3}, 3, 2};
  const auto x = RandomValues(4 * conv.input.elements(), 1);
  const auto weight = RandomValues(conv.patch() * conv.filters, 2);
  const auto dy = RandomValues(4 * conv.output().elements(), 3);
  CheckSameBits(
      [&](Backend& backend, Shifted& at) {
        float* scratch = at.In(std::vector<float>(backend.Conv2dScratch(conv, 4)));
        backend.Conv2dForward(conv, 4, at.In(x), at.In(weight), nullptr, scratch,
                              at.Out(dy.size()));
        backend.Conv2dBackward(conv, 4, at.In(x), at.In(weight), at.In(dy), scratch,
                               at.Out(weight.size()), at.Out(conv.filters), at.Out(x.size()));
        const size_t pooled = 4 * pool.output().elements();
        backend.MaxPoolForward(pool, 4, at.In(x), at.Out(pooled), at.Out(pooled));
        backend.AvgPoolForward(pool, 4, at.In(x), at.Out(pooled));
      },
      threads);
}

TEST_CASE("elementwise kernels, sums and normalisation give the same bits anywhere") {
  const uint32_t threads = GENERATE(1u, 3u);
  const size_t rows = 731, columns = 37, count = rows * columns;
  const auto x = RandomValues(count, 1);
  const auto dy = RandomValues(count, 2);
  const std::vector<float> ones(columns, 1.0f);
  CheckSameBits(
      [&](Backend& backend, Shifted& at) {
        backend.ActivationForward(Activation::kRelu, count, at.In(x), at.Out(count));
        backend.ActivationForward(Activation::kGelu, count, at.In(x), at.Out(count));
        backend.ActivationBackward(Activation::kGelu, count, at.In(x), at.In(dy), at.Out(count));
        backend.ActivationForward(Activation::kTanh, count, at.In(x), at.Out(count));
        backend.ActivationBackward(Activation::kTanh, count, at.In(x), at.In(dy), at.Out(count));
        backend.SumRows(rows, columns, at.In(x), at.Out(columns));
        backend.AddRows(rows, columns, at.In(ones), at.Out(count));
        backend.DropoutForward(count, 0.5f, {1, 2}, at.In(x), at.Out(count), at.Out(count));
        const BatchNormOptions options{rows, columns, 1e-5f};
        const BatchNormWeights weights{at.In(ones), at.In(ones), at.In(ones), at.In(ones)};
        float* saved = at.Out(2 * columns);
        backend.BatchNormForward(options, weights, at.In(x), saved, at.Out(columns),
                                 at.Out(columns), at.Out(count));
        backend.BatchNormBackward(options, weights.gamma, at.In(x), saved, at.In(dy),
                                  at.Out(columns), at.Out(columns), at.Out(count));
      },
      threads);
}

TEST_CASE(
    "a step computed twice, by two backends, from vectors elsewhere in memory, has the same bits") {
  const uint32_t threads = GENERATE(1u, 2u);
  const std::string text = R"(
    layers { conv2d { filters: 6 kernel: 3 padding: 1 } } layers { batch_norm {} }
    layers { gelu {} } layers { max_pool {} } layers { dropout { rate: 0.3 } }
    layers { dense { units: 20 } } layers { tanh {} } layers { dense { units: 4 } }
    loss: LOSS_SOFTMAX_CROSS_ENTROPY)";
  const Batch batch = RandomBatch(13, 8 * 8 * 2, 4, 5);
  std::vector<float> first;
  for (const size_t shift : {0, 1, 3, 6}) {
    auto backend = TestBackend(threads);
    auto model = BuildModel(text, {8, 8, 2}, 4, *backend);
    const size_t total = model->schema().total();
    FloatBuffer weights(total + shift), contribution(total + shift);
    model->Initialize(3, weights.span().subspan(shift));
    const auto target = contribution.span().subspan(shift);
    for (int time = 0; time < 2; ++time) {
      REQUIRE(model->Train(batch, weights.span().subspan(shift), {1, 2, 0}, target).ok());
      if (first.empty()) first.assign(target.begin(), target.end());
      REQUIRE(std::memcmp(first.data(), target.data(), target.size_bytes()) == 0);
    }
  }
}

TEST_CASE("a batch of one row leaves batch norm's running values where they are") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const size_t columns = GENERATE(1, 77);
  const Floats x = RandomValues(columns, 1), gamma = RandomValues(columns, 2);
  const Floats beta = RandomValues(columns, 3);
  const Floats running_mean = RandomValues(columns, 4), running_var = RandomValues(columns, 5);
  Floats saved(2 * columns), mean(columns), variance(columns), y(columns);
  backend->BatchNormForward({1, columns, 1e-5f},
                            {gamma.data(), beta.data(), running_mean.data(), running_var.data()},
                            x.data(), saved.data(), mean.data(), variance.data(), y.data());
  CHECK(mean == running_mean);
  CHECK(variance == running_var);
  // The row is normalised by its own mean, as always.
  CHECK(y == beta);
}

}  // namespace
}  // namespace leeway::testing::bits
