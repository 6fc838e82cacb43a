// Rounded factors: bit by bit, and in products.
#include "worker/compute/precision.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/worker/model/reference.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::precision {
namespace {

constexpr Precision kAll[] = {Precision::kFp32, Precision::kTf32, Precision::kBf16,
                              Precision::kFp16};
// For a product of rounded factors: sums are float32 in each precision.
constexpr double kTolerance = 2e-6;

struct Format {
  int mantissa;
  int smallest_exponent;
  double largest;
};

Format FormatOf(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return {10, -126, std::ldexp(2 - std::ldexp(1, -10), 127)};
    case Precision::kBf16:
      return {7, -126, std::ldexp(2 - std::ldexp(1, -7), 127)};
    case Precision::kFp16:
      return {10, -14, 65504};
    case Precision::kFp32:
      break;
  }
  return {23, -126, std::numeric_limits<float>::max()};
}

// By the definition of a binary format: the nearest multiple of its spacing; if two are nearest,
// the even one.
double Nearest(Precision precision, float value) {
  if (!std::isfinite(value) || value == 0) return value;
  const Format format = FormatOf(precision);
  const int exponent = std::max(std::ilogb(value), format.smallest_exponent);
  const double spacing = std::ldexp(1, exponent - format.mantissa);
  const double rounded = std::nearbyint(value / spacing) * spacing;
  if (std::abs(rounded) > format.largest) return std::copysign(INFINITY, value);
  return std::copysign(rounded, value);
}

void CheckRounding(Precision precision, float value) {
  const float rounded = Rounded(precision, value);
  if (std::isnan(value)) {
    if (!std::isnan(rounded)) FAIL("a NaN became " << rounded);
    return;
  }
  const double expected = Nearest(precision, value);
  if (rounded != expected || std::signbit(rounded) != std::signbit(value)) {
    CAPTURE(PrecisionName(precision), value, FloatBits(value), rounded, expected);
    FAIL("rounded wrong");
  }
}

// Convert halves of either kind to floats of the same value.
float OfBf16(uint32_t half) { return FloatOfBits(half << 16); }
float OfFp16(uint32_t half) {
  const auto mantissa = static_cast<double>(half & 1023);
  const int exponent = static_cast<int>(half >> 10 & 31);
  const double sign = half >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return static_cast<float>(sign * (mantissa == 0 ? INFINITY : NAN));
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return static_cast<float>(sign * magnitude);
}

TEST_CASE("every half is itself when it is rounded, with the same bits") {
  for (uint32_t half = 0; half < 1 << 16; ++half) {
    const float bf16 = OfBf16(half), fp16 = OfFp16(half);
    CheckRounding(Precision::kBf16, bf16);
    CheckRounding(Precision::kFp16, fp16);
    if (!std::isnan(bf16) && Bf16Bits(bf16) != half) FAIL("bf16 " << half);
    if (!std::isnan(fp16) && Fp16Bits(fp16) != half) FAIL("fp16 " << half);
    if (std::isnan(bf16) && !std::isnan(OfBf16(Bf16Bits(bf16)))) FAIL("bf16 NaN " << half);
    if (std::isnan(fp16) && !std::isnan(OfFp16(Fp16Bits(fp16)))) FAIL("fp16 NaN " << half);
  }
}

TEST_CASE("ties go to the even neighbour, and what lies beside them to the nearer one") {
  for (uint32_t half = 0; half < 0x7c00; ++half) {
    // The midpoint between the half and the next one. The largest half's next one is the value that
    // would be infinite.
    const double next = half + 1 == 0x7c00 ? 65536 : OfFp16(half + 1);
    const auto tie = static_cast<float>((OfFp16(half) + next) / 2);
    for (const float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, INFINITY)}) {
      CheckRounding(Precision::kFp16, value);
      CheckRounding(Precision::kFp16, -value);
      if (OfFp16(Fp16Bits(value)) != Rounded(Precision::kFp16, value)) FAIL("bits of " << value);
    }
  }
  for (uint32_t half = 0; half < 0x7f80; ++half) {
    const float tie = FloatOfBits((half << 16) + 0x8000);
    for (const float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, INFINITY)}) {
      CheckRounding(Precision::kBf16, value);
      CheckRounding(Precision::kTf32, value);
    }
  }
}

TEST_CASE("any float is rounded as the formats define it") {
  RandomStream stream(1, RandomPurpose::kGenerate);
  for (int i = 0; i < 1'000'000; ++i) {
    const float value = FloatOfBits(static_cast<uint32_t>(stream.Below(uint64_t{1} << 32)));
    for (const Precision precision : kAll) CheckRounding(precision, value);
    if (std::isnan(value)) continue;
    if (OfBf16(Bf16Bits(value)) != Rounded(Precision::kBf16, value)) FAIL("bf16 of " << value);
    if (OfFp16(Fp16Bits(value)) != Rounded(Precision::kFp16, value)) FAIL("fp16 of " << value);
  }
  for (const float special : {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 65504.0f, 65519.99f,
                              65520.0f, -65520.0f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1p-149f,
                              FloatOfBits(0x7fffffff), FloatOfBits(0xffffffff)}) {
    for (const Precision precision : kAll) CheckRounding(precision, special);
  }
}

Floats RoundedAll(Precision precision, Floats values) {
  for (float& value : values) value = Rounded(precision, value);
  return values;
}

// Returns the error of a product against the product of its factors in the precision. `reference`
// returns the product of factors rounded to a precision.
double ProductError(Precision precision, const Floats& actual,
                    const std::function<Doubles(Precision)>& reference) {
  const double error = RelativeError(actual, reference(precision));
  if (!MayKeepDigits(precision)) return error;
  return std::min(error, RelativeError(actual, reference(Precision::kFp32)));
}

TEST_CASE("a product is that of its rounded factors, in any shape and transposition") {
  const Precision precision = GENERATE(from_range(std::begin(kAll), std::end(kAll)));
  auto backend = TestBackend(GENERATE(1u, 3u), precision);
  const GemmShape shape =
      GENERATE(GemmShape{1, 1, 1}, GemmShape{3, 5, 7}, GemmShape{2, 3, 200}, GemmShape{1, 40, 33},
               GemmShape{40, 1, 33}, GemmShape{65, 47, 129}, GemmShape{11, 300, 257});
  const Op op_a = GENERATE(Op::kAsIs, Op::kTransposed);
  const Op op_b = GENERATE(Op::kAsIs, Op::kTransposed);
  const bool accumulate = GENERATE(false, true);
  const Floats a = RandomValues(shape.m * shape.k, 1);
  const Floats b = RandomValues(shape.k * shape.n, 2);
  const Floats start = RandomValues(shape.m * shape.n, 3);
  Floats c = start;
  backend->Gemm(shape, op_a, a.data(), op_b, b.data(), accumulate, c.data());
  CAPTURE(PrecisionName(precision), shape.m, shape.n, shape.k, accumulate);
  CHECK(ProductError(precision, c, [&](Precision rounding) {
          return ReferenceGemm(shape, op_a, RoundedAll(rounding, a), op_b, RoundedAll(rounding, b),
                               accumulate ? &start : nullptr);
        }) < kTolerance);
}

TEST_CASE("parts of larger matrices are rounded as they lie there") {
  const Precision precision = GENERATE(from_range(std::begin(kAll), std::end(kAll)));
  auto backend = TestBackend(1, precision);
  const Op op_a = GENERATE(Op::kAsIs, Op::kTransposed);
  const Op op_b = GENERATE(Op::kAsIs, Op::kTransposed);
  constexpr size_t kSide = 60;
  const Floats a = RandomValues(kSide * kSide, 1);
  const Floats b = RandomValues(kSide * kSide, 2);
  const GemmShape shape{23, 37, 31, kSide, kSide, kSide};
  Floats c(kSide * kSide, 7.0f);
  backend->Gemm(shape, op_a, a.data() + 61, op_b, b.data() + 5, false, c.data());
  Doubles actual, expected;
  for (size_t i = 0; i < kSide * kSide; ++i) {
    const size_t row = i / kSide, column = i % kSide;
    actual.push_back(c[i]);
    expected.push_back(7);
    if (row >= shape.m || column >= shape.n) continue;
    expected.back() = 0;
    for (size_t p = 0; p < shape.k; ++p) {
      const float left = a[61 + (op_a == Op::kAsIs ? row * kSide + p : p * kSide + row)];
      const float right = b[5 + (op_b == Op::kAsIs ? p * kSide + column : column * kSide + p)];
      expected.back() += static_cast<double>(Rounded(precision, left)) * Rounded(precision, right);
    }
  }
  CHECK(RelativeError(actual, expected) < kTolerance);
}

TEST_CASE("a convolution is that of its rounded factors, both ways, the bias is no factor") {
  const Precision precision = GENERATE(from_range(std::begin(kAll), std::end(kAll)));
  auto backend = TestBackend(GENERATE(1u, 3u), precision);
  const Conv2dShape shape =
      GENERATE(Conv2dShape{{9, 7, 3}, 5, 3, 2, 1}, Conv2dShape{{12, 12, 16}, 8, 5, 1, 0},
               Conv2dShape{{70, 90, 4}, 2, 7, 1, 3});
  constexpr size_t kBatch = 3;
  const Floats x = RandomValues(kBatch * shape.input.elements(), 1);
  const Floats weight = RandomValues(shape.patch() * shape.filters, 2);
  const Floats bias = RandomValues(shape.filters, 3);
  const Floats dy = RandomValues(kBatch * shape.output().elements(), 4);
  CAPTURE(PrecisionName(precision), shape.input.height, shape.kernel);
  Floats scratch(backend->Conv2dScratch(shape, kBatch));
  Floats y(dy.size()), dweight(weight.size()), dbias(bias.size()), dx(x.size());
  backend->Conv2dForward(shape, kBatch, x.data(), weight.data(), bias.data(), scratch.data(),
                         y.data());
  backend->Conv2dBackward(shape, kBatch, x.data(), weight.data(), dy.data(), scratch.data(),
                          dweight.data(), dbias.data(), dx.data());
  CHECK(ProductError(precision, y, [&](Precision rounding) {
          return ReferenceConv(shape, kBatch, RoundedAll(rounding, x), RoundedAll(rounding, weight),
                               &bias);
        }) < kTolerance);
  const auto products = [&](Precision rounding) {
    return ReferenceConvBackward(shape, kBatch, RoundedAll(rounding, x),
                                 RoundedAll(rounding, weight), RoundedAll(rounding, dy));
  };
  // oneDNN adds up all pixels in float.
  CHECK(ProductError(precision, dweight,
                     [&](Precision rounding) { return products(rounding).weight; }) < 5e-6);
  CHECK(ProductError(precision, dx, [&](Precision rounding) { return products(rounding).x; }) <
        kTolerance);
  CHECK(RelativeError(dbias, ReferenceConvBackward(shape, kBatch, x, weight, dy).bias) < 1e-5);
}

TEST_CASE("what does not fit in fp16 becomes infinite in a product, in bf16 it does not") {
  const float a[] = {70000}, b[] = {1};
  for (const auto& [precision, finite] :
       {std::pair(Precision::kFp16, false), std::pair(Precision::kBf16, true)}) {
    auto backend = TestBackend(1, precision);
    float c[1] = {};
    backend->Gemm({1, 1, 1}, Op::kAsIs, a, Op::kAsIs, b, false, c);
    CHECK(std::isfinite(c[0]) == finite);
  }
}

TEST_CASE("scaling multiplies, and clears a flag where something is not finite") {
  auto backend = TestBackend();
  Floats x = RandomValues(1000, 1);
  const Floats before = x;
  float finite = 1;
  backend->Scale(x.size(), 0.25f, x.data(), nullptr);
  for (size_t i = 0; i < x.size(); ++i) REQUIRE(x[i] == 0.25f * before[i]);
  backend->Scale(x.size(), 4, x.data(), &finite);
  CHECK(x == before);
  CHECK(finite == 1);
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    x[777] = bad;
    finite = 1;
    backend->Scale(x.size(), 1, x.data(), &finite);
    CHECK(finite == 0);
    // A later finite call does not set the flag again.
    backend->Scale(700, 1, x.data(), &finite);
    CHECK(finite == 0);
  }
  // The scaling itself overflows.
  Floats large(3, 3e38f);
  finite = 1;
  backend->Scale(large.size(), 2, large.data(), &finite);
  CHECK(finite == 0);
}

constexpr char kModel[] = R"(
    layers { conv2d { filters: 6 kernel: 3 padding: 1 } } layers { batch_norm {} }
    layers { relu {} } layers { max_pool {} } layers { flatten {} } layers { dense { units: 9 } }
    layers { gelu {} } layers { dense { units: 4 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY)";

struct Trained {
  double loss = 0;
  Floats contribution;
};

Trained TrainOnce(Precision precision, float loss_scale, double size = 1) {
  auto backend = TestBackend(1, precision);
  auto model = BuildModel(kModel, {8, 8, 2}, 4, *backend);
  Floats weights = InitialWeights(*model, 1);
  Batch batch = RandomBatch(16, 128, 4, 2);
  for (float& feature : batch.features) feature *= static_cast<float>(size);
  Trained trained{.contribution = Floats(weights.size())};
  const auto loss =
      model->Train(batch, weights, {}, trained.contribution, nullptr, Home::kHost, loss_scale);
  REQUIRE(loss.ok());
  trained.loss = *loss;
  return trained;
}

TEST_CASE("a contribution does not depend on the loss scale, where nothing is rounded away") {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Trained plain = TrainOnce(precision, 1);
    for (const float scale : {2.0f, 1024.0f, 65536.0f}) {
      const Trained scaled = TrainOnce(precision, scale);
      CAPTURE(PrecisionName(precision), scale);
      CHECK(scaled.loss == plain.loss);
      CHECK(scaled.contribution == plain.contribution);
    }
  }
}

TEST_CASE("a gradient in each precision is near that of fp32, fp16 wants its scale for that") {
  const Trained exact = TrainOnce(Precision::kFp32, 1);
  CHECK(RelativeError(TrainOnce(Precision::kTf32, 1).contribution, exact.contribution) < 2e-3);
  CHECK(RelativeError(TrainOnce(Precision::kBf16, 1).contribution, exact.contribution) < 2e-2);
  CHECK(RelativeError(TrainOnce(Precision::kFp16, 1024).contribution, exact.contribution) < 2e-3);
  // A loss scale of 2^24 is too large for fp16.
  const Floats overflowed = TrainOnce(Precision::kFp16, 0x1p24f).contribution;
  CHECK_FALSE(std::all_of(overflowed.begin(), overflowed.end(),
                          [](float value) { return std::isfinite(value); }));
}

}  // namespace
}  // namespace leeway::testing::precision
