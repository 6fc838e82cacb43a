#include "worker/compute/eigen/eigen_backend.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>

#include <Eigen/Core>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/machine.h"

namespace leeway {
namespace {

// Fixes the cache sizes that Eigen uses. Eigen divides a product by the caches that it detects, and
// this division orders the additions. With fixed sizes a worker that continues on another machine
// computes the same bits. In measurements, the fixed sizes were as fast as the detected ones.
void FixCacheSizes() {
  static std::once_flag once;
  std::call_once(once, [] { Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 2 << 20); });
}

constexpr size_t kAlign = 64;

}  // namespace

EigenBackend::EigenBackend(uint32_t threads, Precision precision)
    : pool_(threads), library_(MakeCpuLibrary(pool_)), precision_(precision) {
  FixCacheSizes();
}

absl::StatusOr<std::unique_ptr<EigenBackend>> EigenBackend::Make(uint32_t threads,
                                                                 Precision precision) {
  try {
    return std::unique_ptr<EigenBackend>(new EigenBackend(threads, precision));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("starting ", threads, " compute threads (workers.threads): ", error.what()));
  }
}

absl::StatusOr<DeviceMemory> EigenBackend::Allocate(size_t count) {
  // Refuses more memory than the machine has. Otherwise the kernel would grant the memory now, and
  // kill the process later, when it uses the memory.
  const uint64_t memory = MachineMemoryBytes();
  if (count > memory / sizeof(float)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a batch's activations need ", count, " values of ", sizeof(float),
        " bytes, but this machine has ", memory, " bytes of memory: make data.batch_size smaller"));
  }
  const size_t bytes = (count * sizeof(float) + kAlign) / kAlign * kAlign;
  auto* data = static_cast<float*>(std::aligned_alloc(kAlign, bytes));
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("allocating ", bytes, " bytes for a batch's activations"));
  }
  std::memset(data, 0, bytes);
  return DeviceMemory(data, DeviceFree{this});
}

void EigenBackend::Free(float* data) { std::free(data); }

void EigenBackend::CopyToDevice(Stream stream, std::span<const float> host, float* device) {
  std::memcpy(device, host.data(), host.size_bytes());
}

void EigenBackend::CopyToHost(Stream stream, const float* device, std::span<float> host) {
  std::memcpy(host.data(), device, host.size_bytes());
}

}  // namespace leeway
