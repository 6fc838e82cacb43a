#include "worker/device/cuda/module/gpu_runtime.h"

#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/device/cuda/device_check.h"
#include "worker/device/cuda/module/libraries.h"
#include "worker/device/cuda/module/start_convolver.h"

namespace leeway::cuda {
namespace {

static_assert(kSuccess == cudaSuccess && kOutOfMemory == cudaErrorMemoryAllocation &&
              kNotReady == cudaErrorNotReady);

// The size of cuBLAS's workspace. It is the size that cuBLAS itself chooses for Hopper; other
// devices need less. The workspace belongs to this module, so that cuBLAS does not allocate memory
// in a step, and adds in the same order in each step.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

// Clears CUDA's last error, because `code` already reports it. Otherwise a later call would return
// the same error.
Code Said(cudaError_t code) {
  if (code != cudaSuccess) (void)cudaGetLastError();
  return code;
}

// Makes the device the calling thread's current device, to which the thread's calls of CUDA refer.
// Each call of the runtime selects the device first, even a call for an event, although an event
// knows its device. The reason is that a thread's first call makes a context on the thread's
// current device, which by default is cuda:0.
Code SelectDevice(int index) {
  thread_local int current = -1;
  if (current == index) return kSuccess;
  const Code code = Said(cudaSetDevice(index));
  current = code == kSuccess ? index : -1;
  return code;
}

absl::StatusOr<int> CountDevices() {
  int count = 0;
  const Code code = Said(cudaGetDeviceCount(&count));
  CudaVersions versions{.driver = 0, .runtime = CUDART_VERSION};
  (void)Said(cudaDriverGetVersion(&versions.driver));
  RETURN_IF_ERROR(CheckCount(code, code == kSuccess ? count : 0, versions,
                             cudaGetErrorString(static_cast<cudaError_t>(code))));
  return count;
}

absl::StatusOr<cudaDeviceProp> PropertiesOf(int index) {
  cudaDeviceProp properties = {};
  const Code code = Said(cudaGetDeviceProperties(&properties, index));
  RETURN_IF_ERROR(OpenError(code, absl::StrCat("cuda:", index),
                            cudaGetErrorString(static_cast<cudaError_t>(code))));
  return properties;
}

cudaDataType_t FactorType(Precision precision) {
  if (precision == Precision::kBf16) return CUDA_R_16BF;
  return precision == Precision::kFp16 ? CUDA_R_16F : CUDA_R_32F;
}

absl::Status CheckPrecisionSettings() {
  for (const char* name : {"CUBLAS_EMULATE_SINGLE_PRECISION", "NVIDIA_TF32_OVERRIDE"}) {
    RETURN_IF_ERROR(CheckPrecisionSetting(name, std::getenv(name)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<LeewayDeviceInfo>> ListDevices(bool measure_free) {
  ASSIGN_OR_RETURN(const int count, CountDevices());
  std::vector<LeewayDeviceInfo> devices;
  for (int index = 0; index < count; ++index) {
    ASSIGN_OR_RETURN(const cudaDeviceProp properties, PropertiesOf(index));
    LeewayDeviceInfo& device = devices.emplace_back();
    device = {};
    std::snprintf(device.name, sizeof(device.name), "%.127s", properties.name);
    device.capability_major = properties.major;
    device.capability_minor = properties.minor;
    device.memory_bytes = properties.totalGlobalMem;
    // The bus id is only needed to place threads, so the device is usable without it.
    if (Said(cudaDeviceGetPCIBusId(device.pci_bus_id, sizeof(device.pci_bus_id), index)) !=
        kSuccess) {
      device.pci_bus_id[0] = '\0';
    }
    if (!measure_free) continue;
    size_t free = 0, total = 0;
    // These calls make a context. If a busy device has no room for a context, it has no free
    // memory.
    if (SelectDevice(index) == kSuccess && Said(cudaMemGetInfo(&free, &total)) == kSuccess) {
      device.free_bytes = free;
    }
  }
  return devices;
}

absl::StatusOr<std::unique_ptr<GpuRuntime>> GpuRuntime::Open(uint32_t index, Precision precision) {
  RETURN_IF_ERROR(CheckPrecisionSettings());
  ASSIGN_OR_RETURN(const int count, CountDevices());
  RETURN_IF_ERROR(CheckIndex(index, count));
  ASSIGN_OR_RETURN(const cudaDeviceProp properties, PropertiesOf(static_cast<int>(index)));
  std::string name = absl::StrCat("cuda:", index, ", ", properties.name, " (compute capability ",
                                  properties.major, ".", properties.minor, ")");
  RETURN_IF_ERROR(
      CheckCapability(name, 10 * properties.major + properties.minor, LEEWAY_CUDA_OLDEST));
  RETURN_IF_ERROR(CheckPrecision(name, 10 * properties.major + properties.minor, precision));
  std::unique_ptr<GpuRuntime> runtime(new GpuRuntime(index, std::move(name)));
  const Code code = runtime->Start();
  RETURN_IF_ERROR(OpenError(code, runtime->device(), runtime->Describe(code)));
  RETURN_IF_ERROR(runtime->StartCublas());
  ASSIGN_OR_RETURN(StartedConvolver started, StartConvolver(*runtime));
  runtime->convolver_ = std::move(started.convolver);
  runtime->remark_ = std::move(started.remark);
  return runtime;
}

Code GpuRuntime::Start() {
  if (const Code code = Enter(); code != kSuccess) return code;
  for (cudaStream_t& stream : streams_) {
    // The streams must never synchronise with the default stream.
    const Code code = Said(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (code != kSuccess) return code;
  }
  return Allocate(kWorkspaceBytes, &workspace_);
}

absl::Status GpuRuntime::StartCublas() {
  ASSIGN_OR_RETURN(cublas_, LoadCublas(LibraryFolders()));
  cublasStatus_t status = cublas_.create(&handle_);
  if (status == CUBLAS_STATUS_SUCCESS) status = cublas_.set_stream(handle_, Of(Stream::kCompute));
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublas_.set_workspace(handle_, workspace_, kWorkspaceBytes);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublas_.set_math_mode(handle_, CUBLAS_DEFAULT_MATH);
  }
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string what =
      absl::StrCat("starting cuBLAS on ", name_, ": ", cublas_.describe(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": free some of the device's memory"));
  }
  return absl::InternalError(what);
}

GpuRuntime::~GpuRuntime() {
  (void)Enter();
  convolver_.reset();
  if (handle_ != nullptr) (void)cublas_.destroy(handle_);
  for (cudaStream_t stream : streams_) {
    if (stream != nullptr) (void)Said(cudaStreamDestroy(stream));
  }
  if (workspace_ != nullptr) (void)Said(cudaFree(workspace_));
}

std::string GpuRuntime::Describe(Code code) const {
  if (code >= kCudnn) return convolver_ == nullptr ? "cuDNN" : convolver_->Describe(code);
  if (code >= kCublas) {
    return absl::StrCat("cuBLAS: ",
                        cublas_.describe == nullptr
                            ? "not loaded"
                            : cublas_.describe(static_cast<cublasStatus_t>(code - kCublas)));
  }
  const auto error = static_cast<cudaError_t>(code);
  return absl::StrCat(cudaGetErrorName(error), " (", cudaGetErrorString(error), ")");
}

bool GpuRuntime::OutOfMemory(Code code) const {
  if (code >= kCudnn) return convolver_ != nullptr && convolver_->OutOfMemory(code);
  return code == kOutOfMemory || code == kCublas + CUBLAS_STATUS_ALLOC_FAILED;
}

Code GpuRuntime::Enter() { return SelectDevice(static_cast<int>(index_)); }

Code GpuRuntime::Allocate(size_t bytes, void** device) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaMalloc(device, bytes));
}

Code GpuRuntime::Free(void* device) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaFree(device));
}

Code GpuRuntime::MemoryLeft(size_t* free, size_t* total) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaMemGetInfo(free, total));
}

Code GpuRuntime::Pin(void* host, size_t bytes) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaHostRegister(host, bytes, cudaHostRegisterPortable));
}

Code GpuRuntime::Unpin(void* host) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaHostUnregister(host));
}

Code GpuRuntime::CopyUp(Stream stream, const void* host, void* device, size_t bytes) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, Of(stream)));
}

Code GpuRuntime::CopyDown(Stream stream, const void* device, void* host, size_t bytes) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, Of(stream)));
}

Code GpuRuntime::CopyInside(const void* from, void* to, size_t bytes) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, Of(Stream::kCompute)));
}

Code GpuRuntime::MakeEvent(void** event) {
  if (const Code code = Enter(); code != kSuccess) return code;
  cudaEvent_t made = nullptr;
  const Code code = Said(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  *event = made;
  return code;
}

Code GpuRuntime::DestroyEvent(void* event) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaEventDestroy(static_cast<cudaEvent_t>(event)));
}

Code GpuRuntime::Record(void* event, Stream stream) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaEventRecord(static_cast<cudaEvent_t>(event), Of(stream)));
}

Code GpuRuntime::Wait(Stream stream, void* event) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaStreamWaitEvent(Of(stream), static_cast<cudaEvent_t>(event), 0));
}

Code GpuRuntime::Query(void* event) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaEventQuery(static_cast<cudaEvent_t>(event)));
}

Code GpuRuntime::Await(void* event) {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaEventSynchronize(static_cast<cudaEvent_t>(event)));
}

Code GpuRuntime::AwaitAll() {
  if (const Code code = Enter(); code != kSuccess) return code;
  return Said(cudaDeviceSynchronize());
}

Code GpuRuntime::Multiply(const BlasProduct& product) {
  if (const Code code = Enter(); code != kSuccess) return code;
  const float alpha = 1;
  const auto op = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const cudaDataType_t type = FactorType(product.precision);
  // With COMPUTE_32F, sums are fp32, and float factors keep their full precision (no TF32).
  const cublasComputeType_t compute =
      product.precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const cublasStatus_t status =
      cublas_.gemm(handle_, op(product.transpose_a), op(product.transpose_b), product.m, product.n,
                   product.k, &alpha, product.a, type, product.lda, product.b, type, product.ldb,
                   &product.beta, product.c, CUDA_R_32F, product.ldc, compute, CUBLAS_GEMM_DEFAULT);
  return status == CUBLAS_STATUS_SUCCESS ? kSuccess : kCublas + static_cast<Code>(status);
}

}  // namespace leeway::cuda
