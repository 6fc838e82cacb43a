// Every kernel against the same computation in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/worker/model/reference.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::backend {
namespace {

constexpr double kTolerance = 2e-6;

Conv2dShape Conv(ImageShape input, uint32_t filters, uint32_t kernel, uint32_t stride,
                 uint32_t padding) {
  return {input, filters, kernel, stride, padding};
}

TEST_CASE("a matrix product is that of double precision, in any shape and transposition") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const GemmShape shape = GENERATE(
      GemmShape{1, 1, 1}, GemmShape{3, 5, 7}, GemmShape{2, 3, 200}, GemmShape{1, 40, 33},
      GemmShape{40, 1, 33}, GemmShape{1, 1, 100}, GemmShape{64, 1, 1}, GemmShape{17, 31, 1},
      GemmShape{65, 47, 129}, GemmShape{300, 11, 40}, GemmShape{11, 300, 257});
  const Op op_a = GENERATE(Op::kAsIs, Op::kTransposed);
  const Op op_b = GENERATE(Op::kAsIs, Op::kTransposed);
  const bool accumulate = GENERATE(false, true);
  const Floats a = RandomValues(shape.m * shape.k, 1);
  const Floats b = RandomValues(shape.k * shape.n, 2);
  const Floats start = RandomValues(shape.m * shape.n, 3);
  Floats c = start;
  backend->Gemm(shape, op_a, a.data(), op_b, b.data(), accumulate, c.data());
  CAPTURE(shape.m, shape.n, shape.k, accumulate);
  const Doubles expected = ReferenceGemm(shape, op_a, a, op_b, b, accumulate ? &start : nullptr);
  CHECK(RelativeError(c, expected) < kTolerance);
}

TEST_CASE("a product of parts of larger matrices leaves the rest of them alone") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const GemmShape packed = GENERATE(GemmShape{2, 3, 4}, GemmShape{1, 40, 33}, GemmShape{40, 1, 33},
                                    GemmShape{65, 47, 129}, GemmShape{11, 300, 257});
  const Op op_a = GENERATE(Op::kAsIs, Op::kTransposed);
  const Op op_b = GENERATE(Op::kAsIs, Op::kTransposed);
  const bool accumulate = GENERATE(false, true);
  CAPTURE(packed.m, packed.n, packed.k, accumulate);
  // Puts `gap` floats between the rows.
  const auto spread = [](const Floats& values, size_t columns, size_t gap) {
    Floats wide;
    for (size_t i = 0; i < values.size(); ++i) {
      wide.push_back(values[i]);
      if ((i + 1) % columns == 0) wide.insert(wide.end(), gap, 7.0f);
    }
    return wide;
  };
  const size_t a_columns = op_a == Op::kAsIs ? packed.k : packed.m;
  const size_t b_columns = op_b == Op::kAsIs ? packed.n : packed.k;
  const Floats a = RandomValues(packed.m * packed.k, 1);
  const Floats b = RandomValues(packed.k * packed.n, 2);
  const Floats start = RandomValues(packed.m * packed.n, 3);
  Floats c = spread(start, packed.n, 5);
  GemmShape shape = packed;
  shape.a_stride = a_columns + 3;
  shape.b_stride = b_columns + 4;
  shape.c_stride = packed.n + 5;
  backend->Gemm(shape, op_a, spread(a, a_columns, 3).data(), op_b, spread(b, b_columns, 4).data(),
                accumulate, c.data());
  const Doubles expected = ReferenceGemm(packed, op_a, a, op_b, b, accumulate ? &start : nullptr);
  const Floats wide = spread(Floats(expected.begin(), expected.end()), packed.n, 5);
  CHECK(RelativeError(c, Doubles(wide.begin(), wide.end())) < kTolerance);
  for (size_t i = 0; i < c.size(); ++i) {
    if (i % shape.c_stride >= packed.n) REQUIRE(c[i] == 7.0f);
  }
}

TEST_CASE("convolution forward and backward are those of double precision") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const Conv2dShape shape = GENERATE(
      Conv({5, 5, 1}, 1, 1, 1, 0), Conv({7, 9, 1}, 3, 3, 1, 0), Conv({9, 7, 3}, 5, 3, 2, 1),
      Conv({8, 8, 3}, 4, 5, 1, 2), Conv({28, 28, 1}, 16, 5, 1, 0), Conv({12, 12, 16}, 32, 5, 1, 0),
      Conv({6, 5, 2}, 3, 2, 3, 0), Conv({3, 3, 2}, 2, 5, 1, 3), Conv({1, 1, 40}, 7, 1, 1, 0),
      Conv({70, 90, 4}, 2, 7, 1, 3), Conv({4, 4, 1}, 2, 4, 1, 0));
  const size_t batch = GENERATE(1, 4);
  const bool with_bias = GENERATE(true, false);
  const Floats x = RandomValues(batch * shape.input.elements(), 1);
  const Floats weight = RandomValues(shape.patch() * shape.filters, 2);
  const Floats bias = RandomValues(shape.filters, 3);
  const Floats dy = RandomValues(batch * shape.output().elements(), 4);
  CAPTURE(shape.input.height, shape.input.width, shape.kernel, shape.stride, shape.padding, batch);

  Floats scratch(backend->Conv2dScratch(shape, batch));
  Floats y(dy.size(), 7.0f);
  backend->Conv2dForward(shape, batch, x.data(), weight.data(), with_bias ? bias.data() : nullptr,
                         scratch.data(), y.data());
  CHECK(RelativeError(y, ReferenceConv(shape, batch, x, weight, with_bias ? &bias : nullptr)) <
        kTolerance);

  const ConvGradients expected = ReferenceConvBackward(shape, batch, x, weight, dy);
  Floats dweight(weight.size(), 7.0f);
  Floats dbias(bias.size(), 7.0f);
  Floats dx(x.size(), 7.0f);
  backend->Conv2dBackward(shape, batch, x.data(), weight.data(), dy.data(), scratch.data(),
                          dweight.data(), with_bias ? dbias.data() : nullptr, dx.data());
  // oneDNN adds up all pixels in float.
  CHECK(RelativeError(dweight, expected.weight) < 5e-6);
  CHECK(RelativeError(dx, expected.x) < kTolerance);
  // The sums have many terms of either sign.
  if (with_bias) CHECK(RelativeError(dbias, expected.bias) < 1e-5);

  Floats again(weight.size());
  backend->Conv2dBackward(shape, batch, x.data(), weight.data(), dy.data(), scratch.data(),
                          again.data(), nullptr, nullptr);
  CHECK(again == dweight);
}

TEST_CASE("depthwise convolution is each channel's convolution by itself") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const Conv2dShape shape =
      GENERATE(Conv2dShape{{5, 6, 1}, 1, 3, 1, 1}, Conv2dShape{{5, 6, 9}, 9, 3, 2, 1},
               Conv2dShape{{4, 4, 24}, 24, 3, 1, 0}, Conv2dShape{{3, 2, 49}, 49, 1, 1, 0},
               Conv2dShape{{7, 8, 16}, 16, 5, 3, 2});
  const size_t batch = 5;
  const size_t channels = shape.filters;
  const size_t taps = size_t{shape.kernel} * shape.kernel;
  const Floats x = RandomValues(batch * shape.input.elements(), 1);
  const Floats weight = RandomValues(taps * channels, 2);
  const Floats bias = RandomValues(channels, 3);
  Floats y(batch * shape.output().elements(), 7.0f);
  const Floats dy = RandomValues(y.size(), 4);
  Floats dweight(weight.size(), 7.0f), dx(x.size(), 7.0f);
  Doubles expected(y.size()), expected_dweight(weight.size()), expected_dx(x.size());
  for (size_t i = 0; i < y.size(); ++i) expected[i] = bias[i % channels];
  ForEachTap(shape, batch, [&](size_t out, long in, size_t tap) {
    for (size_t c = 0; in >= 0 && c < channels; ++c) {
      const size_t at = static_cast<size_t>(in) * channels + c;
      const size_t to = out * channels + c;
      expected[to] += static_cast<double>(x[at]) * weight[tap * channels + c];
      expected_dweight[tap * channels + c] += static_cast<double>(x[at]) * dy[to];
      expected_dx[at] += static_cast<double>(dy[to]) * weight[tap * channels + c];
    }
  });
  backend->DepthwiseForward(shape, batch, x.data(), weight.data(), bias.data(), y.data());
  CHECK(RelativeError(y, expected) < kTolerance);
  backend->DepthwiseBackward(shape, batch, x.data(), weight.data(), dy.data(), dweight.data(),
                             dx.data());
  CHECK(RelativeError(dweight, expected_dweight) < kTolerance);
  CHECK(RelativeError(dx, expected_dx) < kTolerance);
  Floats again(weight.size());
  backend->DepthwiseBackward(shape, batch, x.data(), weight.data(), dy.data(), again.data(),
                             nullptr);
  CHECK(again == dweight);
}

TEST_CASE("group normalisation is by the mean and the variance of each group of each example") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const GroupNormShape shape = GENERATE(
      GroupNormShape{.batch = 3, .pixels = 1, .channels = 33, .groups = 1, .epsilon = 1e-5f},
      GroupNormShape{.batch = 2, .pixels = 20, .channels = 6, .groups = 3, .epsilon = 0.1f},
      GroupNormShape{.batch = 1, .pixels = 7, .channels = 40, .groups = 2, .epsilon = 1e-3f},
      GroupNormShape{.batch = 4, .pixels = 9, .channels = 5, .groups = 5, .epsilon = 1e-5f});
  const size_t count = shape.batch * shape.pixels * shape.channels;
  Floats x = RandomValues(count, 1, 2);
  for (float& value : x) value += 3;
  const Floats gamma = RandomValues(shape.channels, 2);
  const Floats beta = RandomValues(shape.channels, 3);
  const bool with_beta = GENERATE(true, false);
  const auto mean_of = [&](size_t i) {
    return i / shape.channels / shape.pixels * shape.groups +
           i % shape.channels / shape.group_channels();
  };
  Doubles mean(shape.means()), variance(shape.means());
  for (size_t i = 0; i < count; ++i) mean[mean_of(i)] += x[i] / double(shape.values());
  for (size_t i = 0; i < count; ++i) {
    variance[mean_of(i)] += std::pow(x[i] - mean[mean_of(i)], 2) / double(shape.values());
  }
  Doubles expected(count);
  for (size_t i = 0; i < count; ++i) {
    const double normal =
        (x[i] - mean[mean_of(i)]) / std::sqrt(variance[mean_of(i)] + shape.epsilon);
    expected[i] = normal * gamma[i % shape.channels] + (with_beta ? beta[i % shape.channels] : 0);
  }
  Floats saved(2 * shape.means()), y(count, 7.0f);
  backend->GroupNormForward(shape, gamma.data(), with_beta ? beta.data() : nullptr, x.data(),
                            saved.data(), y.data());
  CHECK(RelativeError(y, expected) < kTolerance);
}

TEST_CASE("columns are copied, and those beside them stay") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const ColumnCopy shape = GENERATE(ColumnCopy{4, 3, 5, 7}, ColumnCopy{1, 1, 1, 9},
                                    ColumnCopy{1000, 40, 64, 40}, ColumnCopy{6, 2, 2, 4});
  const Floats x = RandomValues(shape.rows * shape.from_stride, 1);
  Floats y(shape.rows * shape.to_stride, 7.0f);
  Floats expected = y;
  for (size_t row = 0; row < shape.rows; ++row) {
    for (size_t column = 0; column < shape.columns; ++column) {
      expected[row * shape.to_stride + column] = x[row * shape.from_stride + column];
    }
  }
  backend->CopyColumns(shape, x.data(), y.data());
  CHECK(y == expected);
}

TEST_CASE("max pooling takes the first largest of each window and sends the gradient there") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const PoolShape shape =
      GENERATE(PoolShape{{4, 4, 1}, 2, 2}, PoolShape{{5, 7, 3}, 2, 2}, PoolShape{{6, 6, 16}, 3, 3},
               PoolShape{{7, 6, 27}, 3, 2}, PoolShape{{5, 5, 9}, 2, 3}, PoolShape{{3, 3, 2}, 3, 1},
               PoolShape{{4, 4, 8}, 1, 1});
  const size_t batch = 5;
  Floats x = RandomValues(batch * shape.input.elements(), 1);
  // Rounding makes ties.
  for (float& value : x) value = std::round(value * 2) / 2;
  const size_t outputs = batch * shape.output().elements();
  const Floats dy = RandomValues(outputs, 2);
  Floats y(outputs), winners(outputs), plain(outputs), dx(x.size(), 7.0f);
  backend->MaxPoolForward(shape, batch, x.data(), winners.data(), y.data());
  backend->MaxPoolForward(shape, batch, x.data(), nullptr, plain.data());
  backend->MaxPoolBackward(shape, batch, winners.data(), dy.data(), dx.data());

  Floats expected(outputs);
  Doubles expected_dx(x.size());
  ForEachWindow(shape, batch, [&](size_t i, const std::vector<size_t>& window) {
    size_t best = window[0];
    for (size_t at : window) best = x[at] > x[best] ? at : best;
    expected[i] = x[best];
    expected_dx[best] += dy[i];
  });
  CHECK(y == expected);
  CHECK(plain == expected);
  CHECK(RelativeError(dx, expected_dx) < kTolerance);
}

TEST_CASE("average pooling is the mean of each window") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const PoolShape shape = GENERATE(PoolShape{{4, 4, 1}, 2, 2}, PoolShape{{5, 7, 3}, 2, 2},
                                   PoolShape{{7, 6, 27}, 3, 2}, PoolShape{{5, 5, 9}, 2, 3});
  const size_t batch = 5;
  const Floats x = RandomValues(batch * shape.input.elements(), 1);
  const size_t outputs = batch * shape.output().elements();
  const Floats dy = RandomValues(outputs, 2);
  Floats y(outputs), dx(x.size(), 7.0f);
  backend->AvgPoolForward(shape, batch, x.data(), y.data());
  backend->AvgPoolBackward(shape, batch, dy.data(), dx.data());
  Doubles expected(outputs), expected_dx(x.size());
  const double share = 1.0 / (shape.size * shape.size);
  ForEachWindow(shape, batch, [&](size_t i, const std::vector<size_t>& window) {
    for (size_t at : window) {
      expected[i] += x[at] * share;
      expected_dx[at] += dy[i] * share;
    }
  });
  CHECK(RelativeError(y, expected) < kTolerance);
  CHECK(RelativeError(dx, expected_dx) < kTolerance);
}

TEST_CASE("activations are those of double precision, also in place") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const size_t count = GENERATE(1, 63, 1000, 70001);
  const Floats x = RandomValues(count, 1, 3);
  const Floats dy = RandomValues(count, 2);
  Doubles gelu(count), dgelu(count), tanh(count), dtanh(count);
  Doubles silu(count), dsilu(count);
  Floats relu(count), drelu(count), relu6(count), drelu6(count);
  for (size_t i = 0; i < count; ++i) {
    const double v = x[i];
    const double phi = 0.5 * std::erfc(-v / std::sqrt(2.0));
    gelu[i] = v * phi;
    dgelu[i] = dy[i] * (phi + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI));
    tanh[i] = std::tanh(v);
    dtanh[i] = dy[i] * (1 - tanh[i] * tanh[i]);
    relu[i] = std::max(x[i], 0.0f);
    drelu[i] = x[i] > 0 ? dy[i] : 0;
    relu6[i] = std::min(relu[i], 6.0f);
    drelu6[i] = x[i] > 0 && x[i] < 6 ? dy[i] : 0;
    const double sigmoid = 1 / (1 + std::exp(-v));
    silu[i] = v * sigmoid;
    dsilu[i] = dy[i] * sigmoid * (1 + v * (1 - sigmoid));
  }
  Floats y = x, dx = dy;
  backend->ActivationForward(Activation::kGelu, count, x.data(), y.data());
  backend->ActivationBackward(Activation::kGelu, count, x.data(), dx.data(), dx.data());
  CHECK(RelativeError(y, gelu) < kTolerance);
  CHECK(RelativeError(dx, dgelu) < kTolerance);

  y = x, dx = dy;
  backend->ActivationForward(Activation::kTanh, count, y.data(), y.data());
  backend->ActivationBackward(Activation::kTanh, count, y.data(), dx.data(), dx.data());
  CHECK(RelativeError(y, tanh) < kTolerance);
  CHECK(RelativeError(dx, dtanh) < 1e-5);

  y = x, dx = dy;
  backend->ActivationForward(Activation::kSilu, count, x.data(), y.data());
  backend->ActivationBackward(Activation::kSilu, count, x.data(), dx.data(), dx.data());
  CHECK(RelativeError(y, silu) < kTolerance);
  CHECK(RelativeError(dx, dsilu) < kTolerance);

  y = x, dx = dy;
  backend->ActivationForward(Activation::kRelu6, count, y.data(), y.data());
  backend->ActivationBackward(Activation::kRelu6, count, y.data(), dx.data(), dx.data());
  CHECK(y == relu6);
  CHECK(dx == drelu6);

  y = x, dx = dy;
  backend->ActivationForward(Activation::kRelu, count, y.data(), y.data());
  backend->ActivationBackward(Activation::kRelu, count, y.data(), dx.data(), dx.data());
  CHECK(y == relu);
  CHECK(dx == drelu);
}

TEST_CASE("NaN stays NaN through activations and pooling") {
  auto backend = TestBackend();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Floats x(64, 1.0f), y(64), winners(16);
  x[5] = nan;
  backend->ActivationForward(Activation::kRelu, 64, x.data(), y.data());
  CHECK(std::isnan(y[5]));
  backend->ActivationForward(Activation::kGelu, 64, x.data(), y.data());
  CHECK(std::isnan(y[5]));
  backend->ActivationForward(Activation::kTanh, 64, x.data(), y.data());
  CHECK(std::isnan(y[5]));
  backend->ActivationForward(Activation::kSilu, 64, x.data(), y.data());
  CHECK(std::isnan(y[5]));
  backend->ActivationForward(Activation::kRelu6, 64, x.data(), y.data());
  CHECK(std::isnan(y[5]));
  backend->MaxPoolForward({{8, 8, 1}, 2, 2}, 1, x.data(), winners.data(), y.data());
  CHECK(std::isnan(y[2]));
}

TEST_CASE("a row is added to each row of a matrix") {
  auto backend = TestBackend();
  const size_t columns = GENERATE(1, 32, 77);
  const Floats row = RandomValues(columns, 1);
  const Floats start = RandomValues(3 * columns, 2);
  Floats y = start;
  backend->AddRows(3, columns, row.data(), y.data());
  for (size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == start[i] + row[i % columns]);
}

TEST_CASE("row sums of many rows keep their precision") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const size_t rows = GENERATE(1, 100, 50000);
  const size_t columns = GENERATE(1, 7, 45, 100);
  Floats x = RandomValues(rows * columns, 1);
  for (float& value : x) value += 3;
  Doubles expected(columns);
  for (size_t i = 0; i < x.size(); ++i) expected[i % columns] += x[i];
  Floats sum(columns);
  backend->SumRows(rows, columns, x.data(), sum.data());
  CHECK(RelativeError(sum, expected) < 3e-7);
}

TEST_CASE("batch normalisation is that of double precision") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const size_t rows = GENERATE(2, 37, 3000);
  const size_t columns = GENERATE(1, 16, 77);
  Floats x = RandomValues(rows * columns, 1);
  // A mean far from zero must not cost the variance its digits.
  for (size_t i = 0; i < x.size(); ++i) x[i] += static_cast<float>(i % columns);
  const Floats gamma = RandomValues(columns, 2), beta = RandomValues(columns, 3);
  const Floats dy = RandomValues(x.size(), 4);
  const Floats running_mean = RandomValues(columns, 5);
  const Floats running_var(columns, 2.0f);
  const BatchNormOptions options{rows, columns, 1e-5f};
  const auto expected = ReferenceBatchNorm(rows, columns, 1e-5, x, gamma, beta, dy);

  Floats saved(2 * columns), mean(columns), variance(columns), y(x.size());
  const BatchNormWeights weights{gamma.data(), beta.data(), running_mean.data(),
                                 running_var.data()};
  backend->BatchNormForward(options, weights, x.data(), saved.data(), mean.data(), variance.data(),
                            y.data());
  CHECK(RelativeError(y, expected.y) < 2e-5);
  for (size_t c = 0; c < columns; ++c) {
    const double n = static_cast<double>(rows);
    CHECK(mean[c] == Approx(expected.mean[c]).margin(1e-5));
    CHECK(variance[c] == Approx(expected.variance[c] * n / (n - 1)).margin(1e-5));
  }
  Floats dgamma(columns), dbeta(columns), dx(dy);
  backend->BatchNormBackward(options, gamma.data(), x.data(), saved.data(), dx.data(),
                             dgamma.data(), dbeta.data(), dx.data());
  CHECK(RelativeError(dgamma, expected.dgamma) < 2e-5);
  CHECK(RelativeError(dbeta, expected.dbeta) < 2e-5);
  // Two rows have almost no gradient: what is left is rounding.
  if (rows > 2) CHECK(RelativeError(dx, expected.dx) < 2e-5);

  Floats evaluated(x.size());
  Doubles wanted(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % columns;
    wanted[i] = (x[i] - running_mean[c]) / std::sqrt(2.0 + 1e-5) * gamma[c] + beta[c];
  }
  backend->BatchNormInference(options, weights, x.data(), evaluated.data());
  CHECK(RelativeError(evaluated, wanted) < kTolerance);
}

TEST_CASE("softmax cross-entropy is that of double precision and its gradient the difference's") {
  auto backend = TestBackend();
  const size_t batch = 5, classes = GENERATE(2, 7);
  Floats scores = RandomValues(batch * classes, 1, 2);
  // The scores are far apart and must not overflow.
  scores[0] = 300;
  scores[classes] = -300;
  const Floats labels = {0, 1, 0, 1, 0};
  const auto loss = [&](size_t at, double change) {
    double sum = 0;
    for (size_t i = 0; i < batch; ++i) {
      double top = -1e30, total = 0;
      const auto score = [&](size_t c) {
        return scores[i * classes + c] + (i * classes + c == at ? change : 0.0);
      };
      for (size_t c = 0; c < classes; ++c) top = std::max(top, score(c));
      for (size_t c = 0; c < classes; ++c) total += std::exp(score(c) - top);
      sum += std::log(total) + top - score(static_cast<size_t>(labels[i]));
    }
    return sum;
  };
  uint64_t right = 0;
  for (size_t i = 0; i < batch; ++i) {
    const auto row = scores.begin() + i * classes;
    right += std::max_element(row, row + classes) - row == static_cast<long>(labels[i]);
  }
  Floats gradient(scores.size());
  LossSum sum, alone;
  backend->SoftmaxCrossEntropy({batch, classes}, scores.data(), labels.data(), &sum,
                               gradient.data());
  CHECK(sum.loss == Approx(loss(scores.size(), 0)).epsilon(1e-6));
  CHECK(sum.correct == right);
  for (size_t i = 0; i < scores.size(); ++i) {
    const double slope = (loss(i, 1e-4) - loss(i, -1e-4)) / 2e-4 / batch;
    CHECK(gradient[i] == Approx(slope).margin(1e-6));
  }
  backend->SoftmaxCrossEntropy({batch, classes}, scores.data(), labels.data(), &alone, nullptr);
  CHECK(alone.loss == sum.loss);
}

TEST_CASE("logistic and squared loss and their gradients") {
  auto backend = TestBackend();
  const Floats scores = {0.3f, -2, 5, -400, 400};
  const Floats labels = {1, 0, -1, 1, 1};
  Floats gradient(5);
  LossSum logistic, squared;
  backend->Logistic(5, scores.data(), labels.data(), &logistic, gradient.data());
  double expected = 0;
  for (size_t i = 0; i < 5; ++i) {
    const double sign = labels[i] > 0 ? -1 : 1;
    const double margin = sign * scores[i];
    expected += margin > 100 ? margin : std::log1p(std::exp(margin));
    CHECK(gradient[i] == Approx(sign / (1 + std::exp(-margin)) / 5).margin(1e-9));
  }
  CHECK(logistic.loss == Approx(expected));
  CHECK(logistic.correct == 3);

  backend->Squared(5, scores.data(), labels.data(), &squared, gradient.data());
  expected = 0;
  for (size_t i = 0; i < 5; ++i) {
    const double error = static_cast<double>(scores[i]) - labels[i];
    expected += error * error / 2;
    CHECK(gradient[i] == Approx(error / 5));
  }
  CHECK(squared.loss == Approx(expected));
}

TEST_CASE("a dropout mask is Philox's words below the rate") {
  auto backend = TestBackend(GENERATE(1u, 3u));
  const size_t count = 40007;
  const DropoutKey key{0x123456789abcdef0, 0xfedcba9876543210};
  const Floats x = RandomValues(count, 1);
  Floats mask(count), y(x);
  backend->DropoutForward(count, 0.25f, key, y.data(), mask.data(), y.data());
  bool same = true;
  for (size_t i = 0; i < count; ++i) {
    const auto words = Philox4x32({static_cast<uint32_t>(i / 4), 0, 0x76543210, 0xfedcba98},
                                  {0x9abcdef0, 0x12345678});
    const float factor = words[i % 4] < 0x40000000u ? 0.0f : 1.0f / 0.75f;
    same = same && mask[i] == factor && y[i] == x[i] * factor;
  }
  CHECK(same);
}

TEST_CASE("memory is zeroed, aligned, and refused beyond what there is") {
  auto backend = TestBackend();
  auto memory = backend->Allocate(1000);
  REQUIRE(memory.ok());
  CHECK(reinterpret_cast<uintptr_t>(memory->get()) % 64 == 0);
  CHECK(std::count(memory->get(), memory->get() + 1000, 0.0f) == 1000);
  CHECK(backend->Allocate(size_t{1} << 48).status().code() == absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leeway::testing::backend
