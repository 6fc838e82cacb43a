// The bodies of the GPU's kernels against the CPU's backend, over shapes drawn at random. If the
// order of additions is the same, the bits are the same.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/codec/codec.h"
#include "common/update/rule.h"
#include "tests/worker/device/cuda/kernel_backend.h"
#include "tests/worker/model/support.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway::testing {
namespace {

using Floats = std::vector<float>;

// For sums whose order differs, and for functions that the host's library and Eigen's vector
// functions both round.
constexpr double kTolerance = 2e-6;
constexpr int kShapes = 60;

struct Two {
  explicit Two(bool convolver = false) {
    auto made = EigenBackend::Make(1);
    REQUIRE(made.ok());
    cpu = *std::move(made);
    gpu = KernelBackend(convolver);
  }

  std::unique_ptr<Backend> cpu;
  std::unique_ptr<Backend> gpu;
};

class Draws {
 public:
  explicit Draws(uint64_t seed) : stream_(seed, RandomPurpose::kGenerate) {}
  size_t Between(size_t least, size_t most) { return least + stream_.Below(most - least + 1); }
  uint32_t Small(uint32_t least, uint32_t most) {
    return static_cast<uint32_t>(Between(least, most));
  }

 private:
  RandomStream stream_;
};

TEST_CASE("a product of the GPU's is the CPU's, whatever its shape, strides and transpositions") {
  Two two;
  Draws draws(1);
  for (int round = 0; round < kShapes; ++round) {
    GemmShape shape{draws.Between(1, 40), draws.Between(1, 40), draws.Between(0, 70)};
    const Op op_a = draws.Between(0, 1) == 0 ? Op::kAsIs : Op::kTransposed;
    const Op op_b = draws.Between(0, 1) == 0 ? Op::kAsIs : Op::kTransposed;
    const bool accumulate = draws.Between(0, 1) == 1;
    shape.a_stride = (op_a == Op::kAsIs ? shape.k : shape.m) + draws.Between(1, 3);
    shape.b_stride = (op_b == Op::kAsIs ? shape.n : shape.k) + draws.Between(1, 3);
    shape.c_stride = shape.n + draws.Between(0, 3);
    const Floats a = RandomValues(80 * 80, 2 + round);
    const Floats b = RandomValues(80 * 80, 3 + round);
    Floats c = RandomValues(shape.m * shape.c_stride, 4 + round);
    Floats expected = c;
    two.cpu->Gemm(shape, op_a, a.data(), op_b, b.data(), accumulate, expected.data());
    two.gpu->Gemm(shape, op_a, a.data(), op_b, b.data(), accumulate, c.data());
    CAPTURE(shape.m, shape.n, shape.k, accumulate);
    REQUIRE(RelativeError(c, expected) < kTolerance);
  }
}

TEST_CASE("sums over rows have the CPU's bits up to 65,536 rows, and its digits beyond") {
  Two two;
  Draws draws(2);
  for (int round = 0; round < kShapes; ++round) {
    const size_t rows = round % 10 == 9 ? draws.Between(70'000, 90'000) : draws.Between(1, 3000);
    const size_t columns = draws.Between(1, 20);
    const Floats x = RandomValues(rows * columns, round);
    Floats sum(columns), expected(columns);
    two.cpu->SumRows(rows, columns, x.data(), expected.data());
    two.gpu->SumRows(rows, columns, x.data(), sum.data());
    CAPTURE(rows, columns);
    if (rows <= 65'536) REQUIRE(sum == expected);
    REQUIRE(RelativeError(sum, expected) < kTolerance);
  }
}

TEST_CASE("sums over more columns than partial sums have room for are right") {
  Two two;
  const size_t columns = GENERATE(300'000, 700'000);
  const Floats x = RandomValues(70 * columns, 1);
  Floats sum(columns), expected(columns);
  two.cpu->SumRows(70, columns, x.data(), expected.data());
  two.gpu->SumRows(70, columns, x.data(), sum.data());
  CHECK(RelativeError(sum, expected) < kTolerance);
}

TEST_CASE("convolutions of the GPU's are the CPU's, forward and backward") {
  Two two(GENERATE(false, true));
  Draws draws(3);
  for (int round = 0; round < kShapes; ++round) {
    Conv2dShape shape;
    shape.kernel = draws.Small(1, 5);
    shape.padding = draws.Small(0, 3);
    shape.stride = draws.Small(1, 3);
    shape.filters = draws.Small(1, 6);
    shape.input = {draws.Small(shape.kernel, 12), draws.Small(shape.kernel, 12), draws.Small(1, 5)};
    const size_t batch = draws.Between(1, 4);
    const bool with_bias = draws.Between(0, 1) == 1;
    const Floats x = RandomValues(batch * shape.input.elements(), 10 + round);
    const Floats weight = RandomValues(shape.patch() * shape.filters, 11 + round);
    const Floats bias = RandomValues(shape.filters, 12 + round);
    const Floats dy = RandomValues(batch * shape.output().elements(), 13 + round);
    const auto run = [&](Backend& backend) {
      Floats scratch(backend.Conv2dScratch(shape, batch));
      Floats y(dy.size()), dweight(weight.size()), dbias(bias.size()), dx(x.size());
      backend.Conv2dForward(shape, batch, x.data(), weight.data(),
                            with_bias ? bias.data() : nullptr, scratch.data(), y.data());
      backend.Conv2dBackward(shape, batch, x.data(), weight.data(), dy.data(), scratch.data(),
                             dweight.data(), with_bias ? dbias.data() : nullptr, dx.data());
      return std::vector<Floats>{y, dweight, dbias, dx};
    };
    const std::vector<Floats> expected = run(*two.cpu);
    const std::vector<Floats> actual = run(*two.gpu);
    CAPTURE(shape.input.height, shape.input.width, shape.kernel, shape.stride, shape.padding);
    for (size_t i = 0; i < expected.size(); ++i) {
      // dbias has terms of either sign, added in another order.
      REQUIRE(RelativeError(actual[i], expected[i]) < (i == 2 ? 1e-5 : kTolerance));
    }
  }
}

TEST_CASE("a convolution of more examples than scratch holds is done in parts") {
  Two two;
  // 16 million floats are 4 examples of 256 x 256 pixels under 8 x 8.
  const Conv2dShape shape{{256, 256, 1}, 1, 8, 1, 4};
  const size_t batch = 5;
  CHECK(two.gpu->Conv2dScratch(shape, batch) < two.gpu->Conv2dScratch(shape, 1) * batch);
  const Floats x = RandomValues(batch * shape.input.elements(), 1);
  const Floats weight = RandomValues(shape.patch(), 2);
  const Floats dy = RandomValues(batch * shape.output().elements(), 3);
  const auto run = [&](Backend& backend) {
    Floats scratch(backend.Conv2dScratch(shape, batch));
    Floats y(dy.size()), dweight(weight.size()), dx(x.size());
    backend.Conv2dForward(shape, batch, x.data(), weight.data(), nullptr, scratch.data(), y.data());
    backend.Conv2dBackward(shape, batch, x.data(), weight.data(), dy.data(), scratch.data(),
                           dweight.data(), nullptr, dx.data());
    return std::vector<Floats>{y, dweight, dx};
  };
  const std::vector<Floats> expected = run(*two.cpu);
  const std::vector<Floats> actual = run(*two.gpu);
  for (size_t i = 0; i < expected.size(); ++i) {
    // A weight's gradient is a sum of 330,000 terms of either sign, on the CPU in float.
    CHECK(RelativeError(actual[i], expected[i]) < (i == 1 ? 1e-4 : kTolerance));
  }
}

TEST_CASE("pooling has the CPU's bits") {
  Two two;
  Draws draws(4);
  for (int round = 0; round < kShapes; ++round) {
    PoolShape shape;
    shape.size = draws.Small(1, 4);
    shape.stride = draws.Small(1, 4);
    shape.input = {draws.Small(shape.size, 11), draws.Small(shape.size, 11), draws.Small(1, 20)};
    const size_t batch = draws.Between(1, 4);
    Floats x = RandomValues(batch * shape.input.elements(), 10 + round);
    for (float& value : x) value = std::round(value * 2) / 2;
    if (round % 7 == 0) x[0] = std::numeric_limits<float>::quiet_NaN();
    const size_t outputs = batch * shape.output().elements();
    const Floats dy = RandomValues(outputs, 11 + round);
    const auto run = [&](Backend& backend) {
      Floats y(outputs), winners(outputs), dx(x.size()), mean(outputs), dmean(x.size());
      backend.MaxPoolForward(shape, batch, x.data(), winners.data(), y.data());
      backend.MaxPoolBackward(shape, batch, winners.data(), dy.data(), dx.data());
      backend.AvgPoolForward(shape, batch, x.data(), mean.data());
      backend.AvgPoolBackward(shape, batch, dy.data(), dmean.data());
      // A NaN is not equal to anything.
      for (float* value : {y.data(), mean.data()}) {
        for (size_t i = 0; i < outputs; ++i) value[i] = std::isnan(value[i]) ? 1234.0f : value[i];
      }
      return std::vector<Floats>{y, winners, dx, mean, dmean};
    };
    CAPTURE(shape.input.height, shape.input.width, shape.size, shape.stride);
    REQUIRE(run(*two.gpu) == run(*two.cpu));
  }
}

TEST_CASE("activations, dropout and sums of vectors are the CPU's") {
  Two two;
  Draws draws(5);
  for (int round = 0; round < kShapes; ++round) {
    const size_t count = draws.Between(1, 2000);
    const Floats x = RandomValues(count, round, 3), dy = RandomValues(count, round + 1);
    const DropoutKey key{draws.Between(0, SIZE_MAX - 1), draws.Between(0, SIZE_MAX - 1)};
    const auto exact = [&](Backend& backend) {
      Floats relu = x, drelu = dy, mask(count), dropped = x, product(count), filled(count);
      Floats apart(count), added = dy, rows(3 * count), copied(count);
      backend.ActivationForward(Activation::kRelu, count, relu.data(), relu.data());
      backend.ActivationBackward(Activation::kRelu, count, relu.data(), drelu.data(), drelu.data());
      backend.DropoutForward(count, 0.3f, key, dropped.data(), mask.data(), dropped.data());
      backend.Multiply(count, x.data(), dy.data(), product.data());
      backend.Fill(count, 0.7f, filled.data());
      backend.Copy(count, x.data(), copied.data());
      backend.AddDifference(count, 0.3f, x.data(), dy.data(), nullptr, apart.data());
      backend.AddDifference(count, -0.1f, x.data(), added.data(), added.data(), added.data());
      backend.FillRows(3, count, x.data(), rows.data());
      backend.AddRows(3, count, dy.data(), rows.data());
      return std::vector<Floats>{relu,  drelu,  mask,  dropped, product,
                                 apart, filled, added, rows,    copied};
    };
    REQUIRE(exact(*two.gpu) == exact(*two.cpu));
    const auto near = [&](Backend& backend) {
      Floats gelu(count), dgelu(count), tanh(count), dtanh(count);
      backend.ActivationForward(Activation::kGelu, count, x.data(), gelu.data());
      backend.ActivationBackward(Activation::kGelu, count, x.data(), dy.data(), dgelu.data());
      backend.ActivationForward(Activation::kTanh, count, x.data(), tanh.data());
      backend.ActivationBackward(Activation::kTanh, count, tanh.data(), dy.data(), dtanh.data());
      return std::vector<Floats>{gelu, dgelu, tanh, dtanh};
    };
    const std::vector<Floats> actual = near(*two.gpu), expected = near(*two.cpu);
    for (size_t i = 0; i < actual.size(); ++i) {
      // 1 - tanh^2 loses digits where tanh is near 1.
      REQUIRE(RelativeError(actual[i], expected[i]) < (i == 3 ? 1e-4 : kTolerance));
    }
  }
}

TEST_CASE("batch normalisation has the CPU's bits") {
  Two two;
  Draws draws(6);
  for (int round = 0; round < kShapes; ++round) {
    const size_t columns = draws.Between(1, 40);
    // One row leaves the running values as they are.
    const BatchNormOptions options{round == 0 ? 1 : draws.Between(1, 700), columns, 1e-5f};
    const Floats x = RandomValues(options.rows * columns, round, 2);
    const Floats dy = RandomValues(x.size(), round + 1);
    const Floats gamma = RandomValues(columns, 3), beta = RandomValues(columns, 4);
    const Floats mean = RandomValues(columns, 5), var = RandomValues(columns, 6);
    const BatchNormWeights weights{gamma.data(), beta.data(), mean.data(), var.data()};
    const auto run = [&](Backend& backend) {
      Floats saved(2 * columns), batch_mean(columns), batch_var(columns), y(x.size());
      Floats inferred(x.size()), dgamma(columns), dbeta(columns), dx = dy;
      backend.BatchNormForward(options, weights, x.data(), saved.data(), batch_mean.data(),
                               batch_var.data(), y.data());
      backend.BatchNormInference(options, weights, x.data(), inferred.data());
      backend.BatchNormBackward(options, gamma.data(), x.data(), saved.data(), dx.data(),
                                dgamma.data(), dbeta.data(), dx.data());
      return std::vector<Floats>{saved, batch_mean, batch_var, y, inferred, dgamma, dbeta, dx};
    };
    CAPTURE(options.rows, columns);
    REQUIRE(run(*two.gpu) == run(*two.cpu));
  }
}

TEST_CASE("losses and their gradients are the CPU's") {
  Two two;
  Draws draws(7);
  for (int round = 0; round < kShapes; ++round) {
    const size_t batch = round == 0 ? 140'000 : draws.Between(1, 500);
    const size_t classes = draws.Between(2, 12);
    const Floats scores = RandomValues(batch * classes, round, 4);
    Floats labels(batch);
    for (float& label : labels) label = static_cast<float>(draws.Between(0, classes - 1));
    const auto run = [&](Backend& backend, std::vector<LossSum>& sums) {
      Floats soft(scores.size()), smoothed(scores.size()), logistic(batch), squared(batch);
      sums.resize(5);
      backend.SoftmaxCrossEntropy({batch, classes}, scores.data(), labels.data(), &sums[0],
                                  soft.data());
      backend.SoftmaxCrossEntropy({batch, classes}, scores.data(), labels.data(), &sums[1],
                                  nullptr);
      backend.Logistic(batch, scores.data(), labels.data(), &sums[2], logistic.data());
      backend.Squared(batch, scores.data(), labels.data(), &sums[3], squared.data());
      backend.SoftmaxCrossEntropy({batch, classes, 0.1f}, scores.data(), labels.data(), &sums[4],
                                  smoothed.data());
      return std::vector<Floats>{soft, smoothed, logistic, squared};
    };
    std::vector<LossSum> actual_sums, expected_sums;
    const std::vector<Floats> actual = run(*two.gpu, actual_sums);
    const std::vector<Floats> expected = run(*two.cpu, expected_sums);
    for (size_t i = 0; i < actual.size(); ++i) {
      REQUIRE(RelativeError(actual[i], expected[i]) < 1e-6);
    }
    for (size_t i = 0; i < actual_sums.size(); ++i) {
      // The losses are sums of powers in float.
      REQUIRE(actual_sums[i].loss == Approx(expected_sums[i].loss).epsilon(1e-7));
      REQUIRE(actual_sums[i].correct == expected_sums[i].correct);
      REQUIRE(actual_sums[i].in_top5 == expected_sums[i].in_top5);
    }
  }
}

v1::Update ParseUpdate(const std::string& text) {
  v1::Update update;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &update));
  return update;
}

TEST_CASE("an optimizer's steps have the CPU's bits, and averaged values go their share") {
  Two two;
  const auto update = GENERATE(
      as<std::string>(), "sgd {}", "sgd { weight_decay: 0.01 }", "sgd { momentum: 0.9 }",
      "sgd { momentum: 0.9 nesterov: true weight_decay: 0.001 }", "adagrad { weight_decay: 0.01 }",
      "adam {}", "adam { weight_decay: 0.01 }", "adam { bias_correction: false initial_v: 0.01 }",
      "adamw { weight_decay: 0.1 }", "lion {}", "lion { weight_decay: 0.1 }");
  const bool in_parts = GENERATE(false, true);
  const auto rule = MakeUpdateRule(ParseUpdate(update));
  REQUIRE(rule.ok());
  const size_t count = 3000, trained = 2500;
  const std::vector<UpdatePart> parts = {
      {.end = 7, .rate = 0.5, .decay = 0}, {.end = 1000}, {.end = trained, .rate = 3, .decay = 2}};
  const size_t slots = (*rule)->slots().size();
  struct Vectors {
    Floats weights;
    std::vector<Floats> slots;
    float finite = -1;
  };
  const auto run = [&](Backend& backend) {
    Vectors vectors{RandomValues(count, 1), {}};
    for (size_t i = 0; i < slots; ++i) {
      vectors.slots.emplace_back(count, (*rule)->slot_start(i));
    }
    for (uint64_t step = 1; step <= 5; ++step) {
      const Floats contribution = RandomValues(count, 10 + step);
      VectorUpdate work{.rule = rule->get(),
                        .step = {.learning_rate = 0.03f, .number = step},
                        .count = count,
                        .trained = trained,
                        .averages = {{2700, 1.0f}, {count, 0.3f}},
                        .parts = in_parts ? parts : std::vector<UpdatePart>(),
                        .contribution = contribution.data(),
                        .weights = vectors.weights.data()};
      for (Floats& slot : vectors.slots) work.slots.push_back(slot.data());
      backend.Update(work, &vectors.finite);
    }
    return vectors;
  };
  const Vectors actual = run(*two.gpu), expected = run(*two.cpu);
  CAPTURE(update, in_parts);
  CHECK(actual.weights == expected.weights);
  CHECK(actual.slots == expected.slots);
  CHECK(actual.finite == 1.0f);
  CHECK(two.gpu->status().ok());
}

TEST_CASE("an update that is not finite says so, of trained and of averaged values") {
  Two two;
  const auto rule = MakeUpdateRule(ParseUpdate("adam {}"));
  REQUIRE(rule.ok());
  const size_t bad = GENERATE(0, 63, 99, 100, 149);
  const float value =
      GENERATE(std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN());
  Floats weights(150), contribution(150, 1.0f), m(150), v(150);
  contribution[bad] = value;
  float finite = 1;
  two.gpu->Update({.rule = rule->get(),
                   .step = {.learning_rate = 0.1f},
                   .count = 150,
                   .trained = 100,
                   .averages = {{150, 0.5f}},
                   .contribution = contribution.data(),
                   .weights = weights.data(),
                   .slots = {m.data(), v.data()}},
                  &finite);
  CHECK(finite == 0.0f);
}

// Values that are hard to encode, among others.
Floats HardValues(size_t count, uint64_t seed) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kHard[] = {kInfinity, -kInfinity, kNan,     0.0f,     -0.0f, 1e-45f,   -1e-40f,
                             6e-8f,     3e-8f,      65504.0f, 65520.0f, -7e4f, 3.39e38f, -3.4e38f,
                             kMax,      -kMax,      1.5e-38f, 0.5f,     1.0f};
  Floats values = RandomValues(count, seed);
  Draws draws(seed + 1);
  // Groups of tiny and of ordinary values, with a hard value here and there.
  for (size_t i = 0; i < count; ++i) {
    if (i / 256 % 3 == 1) values[i] *= 1e-39f;
    if (i / 256 % 3 == 2 && draws.Between(0, 19) == 0) {
      values[i] = kHard[draws.Between(0, std::size(kHard) - 1)];
    }
  }
  return values;
}

TEST_CASE("encodings of contributions have the CPU's bytes, and lose what it loses") {
  Two two;
  Draws draws(31);
  const auto format =
      GENERATE(GroupFormat::kBf16, GroupFormat::kFp16, GroupFormat::kInt8, GroupFormat::kSign);
  std::vector<size_t> counts = {1, 2, 3, 4, 5, 31, 255, 256, 257, 511, 512, 1023, 4096};
  // More groups than the partial results have room for.
  counts.push_back((size_t{9} << 20) + 77);
  for (int round = 0; round < kShapes; ++round) counts.push_back(draws.Between(1, 3000));
  for (const size_t count : counts) {
    const size_t bytes = CodecOf(format).MaxBytes(count);
    Floats residual = RandomValues(count, count + 1);
    Floats expected_residual = residual;
    // One contribution after the other; the residual is carried on.
    for (uint64_t step = 0; step < (count < 10000 ? 4 : 1); ++step) {
      const Floats values = HardValues(count, count + step);
      Floats encoded(FloatsFor(bytes), 7.0f), expected(FloatsFor(bytes), 7.0f);
      two.gpu->Encode(format, count, values.data(), residual.data(), encoded.data());
      two.cpu->Encode(format, count, values.data(), expected_residual.data(), expected.data());
      CAPTURE(static_cast<int>(format), count, step);
      REQUIRE(std::memcmp(encoded.data(), expected.data(), bytes) == 0);
      REQUIRE(std::memcmp(residual.data(), expected_residual.data(), count * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("a rule without a formula is refused, not computed otherwise") {
  Two two;
  const auto rule = MakeElasticRule(0.1);
  Floats weights(3, 1.0f), contribution(3, 2.0f);
  float finite = 1;
  two.gpu->Update({.rule = rule.get(),
                   .count = 3,
                   .trained = 3,
                   .contribution = contribution.data(),
                   .weights = weights.data()},
                  &finite);
  CHECK(two.gpu->status().code() == absl::StatusCode::kUnimplemented);
  CHECK(weights == Floats(3, 1.0f));
}

}  // namespace
}  // namespace leeway::testing
