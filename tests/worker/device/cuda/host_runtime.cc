#include "tests/worker/device/cuda/host_runtime.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/worker/device/cuda/host_convolver.h"

namespace leeway::testing {
namespace {

using cuda::BlasProduct;
using cuda::Code;
using cuda::kSuccess;

constexpr Code kRefused = 712;
constexpr Code kLaunchFailed = 719;
constexpr size_t kAlign = 256;
constexpr size_t kFromSystemBytes = size_t{64} << 20;

// Converts IEEE half precision, by its definition.
double OfFp16(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const double sign = half >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

// Returns element i of a factor.
double FactorAt(Precision precision, const void* x, int64_t i) {
  switch (precision) {
    case Precision::kFp32:
      return static_cast<const float*>(x)[i];
    case Precision::kTf32:
      return RoundTf32(static_cast<const float*>(x)[i]);
    case Precision::kBf16:
      return FloatOfBits(uint32_t{static_cast<const uint16_t*>(x)[i]} << 16);
    case Precision::kFp16:
      return OfFp16(static_cast<const uint16_t*>(x)[i]);
  }
  return NAN;
}

// Multiplies column-major matrices, in double.
void BlasGemm(const BlasProduct& product) {
  const auto at = [&](const void* x, int64_t row, int64_t column, int64_t ld, bool transpose) {
    return FactorAt(product.precision, x, transpose ? column + row * ld : row + column * ld);
  };
  for (int64_t j = 0; j < product.n; ++j) {
    for (int64_t i = 0; i < product.m; ++i) {
      double sum = 0;
      for (int64_t p = 0; p < product.k; ++p) {
        sum += at(product.a, i, p, product.lda, product.transpose_a) *
               at(product.b, p, j, product.ldb, product.transpose_b);
      }
      float& c = product.c[i + j * product.ldc];
      // As in BLAS, c is not read if beta is 0.
      c = static_cast<float>(product.beta == 0 ? sum : sum + product.beta * c);
    }
  }
}

class HostRuntime final : public cuda::Runtime {
 public:
  HostRuntime(const HostRuntimeOptions& options, HostRuntimeCounts& counts)
      : options_(options), counts_(counts) {}

  std::string device() const override { return "cuda:0, the host"; }
  std::string Describe(Code code) const override { return "error " + std::to_string(code); }

  Code Allocate(size_t bytes, void** device) override {
    if (bytes > options_.memory_bytes) return cuda::kOutOfMemory;
    *device = std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
    if (*device == nullptr) return cuda::kOutOfMemory;
    // Larger pieces come directly from the system, as zeros that take no memory until they are
    // written.
    if (bytes < kFromSystemBytes) std::memset(*device, 0, bytes);
    ++counts_.allocations;
    return kSuccess;
  }
  Code Free(void* device) override {
    std::free(device);
    --counts_.allocations;
    return kSuccess;
  }
  Code MemoryLeft(size_t* free, size_t* total) override {
    *free = *total = options_.memory_bytes;
    return kSuccess;
  }
  Code Pin(void* host, size_t) override {
    if (options_.refuse_pin) return kRefused;
    counts_.pinned.insert(host);
    return kSuccess;
  }
  Code Unpin(void* host) override { return counts_.pinned.erase(host) == 1 ? kSuccess : kRefused; }

  Code CopyUp(Stream, const void* host, void* device, size_t bytes) override {
    std::memcpy(device, host, bytes);
    return kSuccess;
  }
  Code CopyDown(Stream, const void* device, void* host, size_t bytes) override {
    std::memcpy(host, device, bytes);
    return kSuccess;
  }
  Code CopyInside(const void* from, void* to, size_t bytes) override {
    std::memmove(to, from, bytes);
    return kSuccess;
  }

  Code MakeEvent(void** event) override {
    *event = new char;
    ++counts_.events;
    return kSuccess;
  }
  Code DestroyEvent(void* event) override {
    delete static_cast<char*>(event);
    --counts_.events;
    return kSuccess;
  }
  Code Record(void*, Stream) override { return kSuccess; }
  Code Wait(Stream, void*) override { return kSuccess; }
  Code Query(void*) override { return kSuccess; }
  Code Await(void*) override { return kSuccess; }
  Code AwaitAll() override { return kSuccess; }

  Code Multiply(const BlasProduct& product) override {
    if (counts_.products++ == options_.fail_product) return cuda::kCublas + 13;
    BlasGemm(product);
    return kSuccess;
  }
  Code BeforeLaunch() override { return kSuccess; }
  Code AfterLaunch() override {
    return counts_.launches++ == options_.fail_launch ? kLaunchFailed : kSuccess;
  }
  void* native(Stream) override { return nullptr; }
  cuda::Convolver* convolver() override { return options_.convolver ? &convolver_ : nullptr; }

 private:
  const HostRuntimeOptions options_;
  HostRuntimeCounts& counts_;
  HostConvolver convolver_{options_, counts_};
};

}  // namespace

std::unique_ptr<cuda::Runtime> MakeHostRuntime(const HostRuntimeOptions& options,
                                               HostRuntimeCounts& counts) {
  return std::make_unique<HostRuntime>(options, counts);
}

}  // namespace leeway::testing
