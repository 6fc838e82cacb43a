// Convolutions by the runtime's library or by products of patches: which of the two computes them,
// and that the results agree.
#include <string>

#include "tests/worker/device/cuda/host_runtime.h"
#include "tests/worker/device/says.h"
#include "tests/worker/model/support.h"
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/transpose.h"
#include "worker/device/cuda/module/convolution_choice.h"

namespace leeway::testing::convolution {
namespace {

using cuda::AlgorithmOffer;
using cuda::ConvolutionPass;
using cuda::MayUse;
using Floats = std::vector<float>;

TEST_CASE("filters change their layout and back") {
  const Floats weight = RandomValues(3 * 5, 1);
  Floats filters(15), back(15);
  const cuda::Transpose there{3, 5, weight.data(), filters.data()};
  const cuda::Transpose again{5, 3, filters.data(), back.data()};
  for (size_t i = 0; i < 15; ++i) there(i);
  for (size_t i = 0; i < 15; ++i) again(i);
  CHECK(filters[2 * 3 + 1] == weight[1 * 5 + 2]);
  CHECK(back == weight);
}

struct Passes {
  Floats y, dweight, dbias, dx;
};

Passes RunAll(Backend& backend, bool with_dx = true) {
  const Conv2dShape shape{{7, 6, 3}, 4, 3, 2, 1};
  constexpr size_t kBatch = 3;
  const Floats x = RandomValues(kBatch * shape.input.elements(), 1);
  const Floats weight = RandomValues(shape.patch() * shape.filters, 2);
  const Floats bias = RandomValues(shape.filters, 3);
  const Floats dy = RandomValues(kBatch * shape.output().elements(), 4);
  Floats scratch(backend.Conv2dScratch(shape, kBatch));
  Passes passes{Floats(dy.size()), Floats(weight.size()), Floats(bias.size()), Floats(x.size())};
  backend.Conv2dForward(shape, kBatch, x.data(), weight.data(), bias.data(), scratch.data(),
                        passes.y.data());
  backend.Conv2dBackward(shape, kBatch, x.data(), weight.data(), dy.data(), scratch.data(),
                         passes.dweight.data(), passes.dbias.data(),
                         with_dx ? passes.dx.data() : nullptr);
  return passes;
}

Passes RunWith(const HostRuntimeOptions& options, HostRuntimeCounts& counts) {
  auto backend = cuda::CudaBackend::Make(MakeHostRuntime(options, counts), false);
  REQUIRE(backend.ok());
  Passes passes = RunAll(**backend);
  CHECK((*backend)->status().ok());
  return passes;
}

void CheckNear(const Passes& actual, const Passes& expected) {
  CHECK(RelativeError(actual.y, expected.y) < 1e-6);
  CHECK(RelativeError(actual.dweight, expected.dweight) < 1e-6);
  CHECK(RelativeError(actual.dbias, expected.dbias) < 1e-6);
  CHECK(RelativeError(actual.dx, expected.dx) < 1e-6);
}

TEST_CASE("a library that takes a convolution computes all of it, and no product is left") {
  HostRuntimeCounts by_patches, by_library;
  const Passes expected = RunWith({}, by_patches);
  const Passes actual = RunWith({.convolver = true}, by_library);
  CHECK(by_patches.products == 3);
  CHECK(by_patches.convolutions == 0);
  CHECK(by_library.products == 0);
  CHECK(by_library.convolutions == 3);
  CheckNear(actual, expected);
}

TEST_CASE("a pass that the library refuses is computed by patches, the others are not") {
  HostRuntimeCounts by_patches, counts;
  const Passes expected = RunWith({}, by_patches);
  const auto pass =
      GENERATE(ConvolutionPass::kForward, ConvolutionPass::kData, ConvolutionPass::kFilters);
  CheckNear(RunWith({.convolver = true, .refused_passes = {pass}}, counts), expected);
  CHECK(counts.products == 1);
  CHECK(counts.convolutions == 2);
}

TEST_CASE("a convolution that the library refuses when it is to run is computed by patches") {
  HostRuntimeCounts by_patches, counts;
  const Passes expected = RunWith({}, by_patches);
  CheckNear(RunWith({.convolver = true, .refuse_first_run = true}, counts), expected);
  CHECK(counts.products == 3);
  CHECK(counts.convolutions == 0);
}

TEST_CASE("without a gradient of its input a convolution has two passes") {
  HostRuntimeCounts counts;
  auto backend = cuda::CudaBackend::Make(MakeHostRuntime({.convolver = true}, counts), false);
  REQUIRE(backend.ok());
  RunAll(**backend, false);
  CHECK(counts.convolutions == 2);
}

TEST_CASE("only algorithms with the same bits in each run, and all digits, may be used") {
  const AlgorithmOffer good{1, true, true, true};
  for (const auto pass :
       {ConvolutionPass::kForward, ConvolutionPass::kData, ConvolutionPass::kFilters}) {
    CHECK(MayUse(pass, good));
    CHECK_FALSE(MayUse(pass, {1, false, true, true}));
    CHECK_FALSE(MayUse(pass, {1, true, false, true}));
    CHECK_FALSE(MayUse(pass, {1, true, true, false}));
    // Winograd's and Fourier's algorithms.
    for (int algorithm = 3; algorithm < 9; ++algorithm) {
      CHECK_FALSE(MayUse(pass, {algorithm, true, true, true}));
    }
    CHECK_FALSE(MayUse(pass, {-1, true, true, true}));
  }
  // These algorithms add in any order, whatever they report.
  CHECK_FALSE(MayUse(ConvolutionPass::kData, {0, true, true, true}));
  CHECK_FALSE(MayUse(ConvolutionPass::kFilters, {0, true, true, true}));
  CHECK_FALSE(MayUse(ConvolutionPass::kFilters, {3, true, true, true}));
  CHECK(MayUse(ConvolutionPass::kForward, {0, true, true, true}));
  CHECK(MayUse(ConvolutionPass::kForward, {2, true, true, true}));
}

}  // namespace
}  // namespace leeway::testing::convolution
