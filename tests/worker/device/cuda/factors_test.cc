// Copies of factors, and products that are cut because the copies do not fit.
#include <cmath>
#include <vector>

#include "tests/worker/device/cuda/host_runtime.h"
#include "tests/worker/model/support.h"
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/factor_cut.h"

namespace leeway::cuda::factors {
namespace {

using testing::HostRuntimeCounts;
using testing::MakeHostRuntime;
using testing::RandomValues;

std::unique_ptr<CudaBackend> Make(HostRuntimeCounts& counts, Precision precision) {
  auto made = CudaBackend::Make(MakeHostRuntime({}, counts), false, precision);
  REQUIRE(made.ok());
  return *std::move(made);
}

TEST_CASE("parts of a product fit, however their rows lie, and are whole groups or all there is") {
  constexpr size_t kHalves = 4096;
  RandomStream stream(1, RandomPurpose::kGenerate);
  for (int round = 0; round < 20'000; ++round) {
    const auto size = [&] { return 1 + stream.Below(uint64_t{1} << stream.Below(14)); };
    const GemmShape shape{size(), size(), size()};
    const FactorCut cut = FactorCut::Of(shape, kHalves);
    CAPTURE(shape.m, shape.n, shape.k, cut.m, cut.n, cut.k);
    REQUIRE(WholeGroups(cut.m) * WholeGroups(cut.k) <= kHalves);
    REQUIRE(WholeGroups(cut.n) * WholeGroups(cut.k) <= kHalves);
    for (const auto& [part, all] :
         {std::pair(cut.m, shape.m), std::pair(cut.n, shape.n), std::pair(cut.k, shape.k)}) {
      REQUIRE(part > 0);
      REQUIRE((part == all || (part < all && part % kGroupHalves == 0)));
    }
  }
}

TEST_CASE("a copy has whole groups, with zeros behind the columns") {
  const std::vector<float> x = RandomValues(4 * 20, 1);
  std::vector<HalvesGroup> copy(4 * 2);
  const CopyFactor<ToFp16> body{{}, 11, 2, 20, x.data(), copy.data()};
  for (size_t i = 0; i < copy.size(); ++i) body(i);
  for (size_t row = 0; row < 4; ++row) {
    for (size_t column = 0; column < 16; ++column) {
      const uint16_t bits = copy[row * 2 + column / 8].bits[column % 8];
      REQUIRE(bits == (column < 11 ? Fp16Bits(x[row * 20 + column]) : 0));
    }
  }
}

// Integers of few bits, whose products and sums are exact in each precision: a cut must not change
// them.
std::vector<float> Integers(size_t count, uint64_t seed) {
  RandomStream stream(seed, RandomPurpose::kGenerate);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(stream.Below(5)) - 2;
  return values;
}

TEST_CASE("a product whose factors do not fit is cut, and is the same") {
  // Beyond 2^24 elements in the first factor, in the second one, and in both; and a depth beyond
  // 2^21.
  const GemmShape shape = GENERATE(GemmShape{4100, 3, 4100}, GemmShape{3, 4100, 4100},
                                   GemmShape{9, 10, 1 << 21}, GemmShape{2, 3, (1 << 21) + 5});
  const bool accumulate = GENERATE(false, true);
  const bool transpose = GENERATE(false, true);
  HostRuntimeCounts counts;
  auto backend = Make(counts, Precision::kBf16);
  const std::vector<float> a = Integers(shape.m * shape.k, 1);
  const std::vector<float> b = Integers(shape.k * shape.n, 2);
  std::vector<float> c(shape.m * shape.n, 9.0f);
  const Op op = transpose ? Op::kTransposed : Op::kAsIs;
  backend->Gemm(shape, op, a.data(), op, b.data(), accumulate, c.data());
  CHECK(backend->status().ok());
  CHECK(counts.products > 1);
  // Checks some of its elements.
  for (size_t i = 0; i < c.size(); i += 1 + c.size() / 500) {
    const size_t row = i / shape.n, column = i % shape.n;
    double sum = accumulate ? 9 : 0;
    for (size_t p = 0; p < shape.k; ++p) {
      const float left = transpose ? a[p * shape.m + row] : a[row * shape.k + p];
      const float right = transpose ? b[column * shape.k + p] : b[p * shape.n + column];
      sum += left * right;
    }
    REQUIRE(c[i] == sum);
  }
}

TEST_CASE("only bf16 and fp16 take room for copies, once, and give it back") {
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16}) {
    HostRuntimeCounts counts;
    {
      auto backend = Make(counts, precision);
      const int64_t made = counts.allocations;
      CHECK(made == (HasHalves(precision) ? 2 : 1));
      const std::vector<float> a = RandomValues(100, 1);
      std::vector<float> c(100);
      backend->Gemm({10, 10, 10}, Op::kAsIs, a.data(), Op::kAsIs, a.data(), false, c.data());
      CHECK(counts.allocations == made);
      // fp32 and TF32 read the factors themselves.
      CHECK(counts.launches == (HasHalves(precision) ? 2 : 0));
    }
    CHECK(counts.allocations == 0);
  }
  HostRuntimeCounts counts;
  const auto made = CudaBackend::Make(MakeHostRuntime({.memory_bytes = 8 << 20}, counts), false,
                                      Precision::kFp16);
  CHECK(absl::IsResourceExhausted(made.status()));
  CHECK(counts.allocations == 0);
}

}  // namespace
}  // namespace leeway::cuda::factors
