#include "worker/device/cuda/cuda_backend.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/device/cuda/sums.h"

namespace leeway::cuda {
namespace {

// The smallest host memory that is pinned. A smaller piece may share its page with other pinned
// memory.
constexpr size_t kPinBytesMin = 4096;

absl::Status NoRoom(Runtime& runtime, Code code, size_t bytes) {
  if (code != kOutOfMemory) {
    return absl::InternalError(absl::StrCat(runtime.device(), " failed to allocate ", bytes,
                                            " bytes: ", runtime.Describe(code)));
  }
  size_t free = 0, total = 0;
  if (runtime.MemoryLeft(&free, &total) != kSuccess) free = total = 0;
  return absl::ResourceExhaustedError(absl::StrCat(
      runtime.device(), " cannot allocate ", bytes, " bytes: ", free, " of its ", total,
      " bytes are free; make data.batch_size smaller, or let fewer processes share the device"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Make(std::unique_ptr<Runtime> runtime,
                                                               bool blocking, Precision precision) {
  std::unique_ptr<CudaBackend> backend(new CudaBackend(std::move(runtime), blocking, precision));
  Runtime& calls = backend->queue_.runtime();
  Code code = calls.Allocate(kPartialsBytes, &backend->partials_);
  if (code != kSuccess) return NoRoom(calls, code, kPartialsBytes);
  const size_t bytes = FactorBytes(precision);
  if (bytes > 0) code = calls.Allocate(bytes, &backend->factors_);
  if (code != kSuccess) return NoRoom(calls, code, bytes);
  return backend;
}

CudaBackend::~CudaBackend() {
  if (partials_ == nullptr) return;
  (void)queue_.runtime().AwaitAll();
  (void)queue_.runtime().Free(partials_);
  if (factors_ != nullptr) (void)queue_.runtime().Free(factors_);
}

absl::StatusOr<DeviceMemory> CudaBackend::Allocate(size_t count) {
  Runtime& calls = queue_.runtime();
  const size_t bytes = count * sizeof(float);
  void* data = nullptr;
  // The size is at least one float, because cudaMalloc returns null for 0 bytes.
  const Code code = calls.Allocate(bytes == 0 ? sizeof(float) : bytes, &data);
  if (code != kSuccess) return NoRoom(calls, code, bytes);
  return DeviceMemory(static_cast<float*>(data), DeviceFree{this});
}

void CudaBackend::Free(float* data) {
  const Code code = queue_.runtime().Free(data);
  if (code == kSuccess) return;
  queue_.Fail(absl::InternalError(absl::StrCat(
      queue_.runtime().device(), " failed to free memory: ", queue_.runtime().Describe(code))));
}

PinnedMemory CudaBackend::Pin(std::span<float> host) {
  if (host.size_bytes() < kPinBytesMin) return {};
  // A failure to pin is not an error, because copies without pinning are only slower.
  if (queue_.runtime().Pin(host.data(), host.size_bytes()) != kSuccess) return {};
  return PinnedMemory(host.data(), HostUnpin{this});
}

void CudaBackend::Unpin(float* host) { (void)queue_.runtime().Unpin(host); }

void CudaBackend::CopyToDevice(Stream stream, std::span<const float> host, float* device) {
  queue_.CopyToDevice(stream, host, device);
}

void CudaBackend::CopyToHost(Stream stream, const float* device, std::span<float> host) {
  queue_.CopyToHost(stream, device, host);
}

}  // namespace leeway::cuda
