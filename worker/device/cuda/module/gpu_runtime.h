// The Runtime of a real GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "absl/status/statusor.h"
#include "worker/device/cuda/module/cublas.h"
#include "worker/device/cuda/runtime.h"
#include "worker/device/module_abi.h"

namespace leeway::cuda {

// Lists the devices of this machine. Returns the errors of DeviceModule::List.
absl::StatusOr<std::vector<LeewayDeviceInfo>> ListDevices(bool measure_free);

class GpuRuntime final : public Runtime {
 public:
  // Opens device `index`. Returns the errors of DeviceModule::Open.
  static absl::StatusOr<std::unique_ptr<GpuRuntime>> Open(uint32_t index, Precision precision);
  ~GpuRuntime() override;

  std::string device() const override { return name_; }
  std::string Describe(Code code) const override;
  bool OutOfMemory(Code code) const override;
  // Returns a remark for the log, which says how convolutions are computed.
  const std::string& remark() const { return remark_; }

  Code Allocate(size_t bytes, void** device) override;
  Code Free(void* device) override;
  Code MemoryLeft(size_t* free, size_t* total) override;
  Code Pin(void* host, size_t bytes) override;
  Code Unpin(void* host) override;

  Code CopyUp(Stream stream, const void* host, void* device, size_t bytes) override;
  Code CopyDown(Stream stream, const void* device, void* host, size_t bytes) override;
  Code CopyInside(const void* from, void* to, size_t bytes) override;

  Code MakeEvent(void** event) override;
  Code DestroyEvent(void* event) override;
  Code Record(void* event, Stream stream) override;
  Code Wait(Stream stream, void* event) override;
  Code Query(void* event) override;
  Code Await(void* event) override;
  Code AwaitAll() override;

  Code Multiply(const BlasProduct& product) override;
  Convolver* convolver() override { return convolver_.get(); }
  Code BeforeLaunch() override { return Enter(); }
  Code AfterLaunch() override { return cudaGetLastError(); }
  void* native(Stream stream) override { return Of(stream); }

 private:
  GpuRuntime(uint32_t index, std::string name) : index_(index), name_(std::move(name)) {}

  // Start makes the streams and the workspace; StartCublas loads and starts cuBLAS.
  Code Start();
  absl::Status StartCublas();
  // Makes the device the current device of the calling thread.
  Code Enter();
  cudaStream_t Of(Stream stream) const { return streams_[static_cast<size_t>(stream)]; }

  const uint32_t index_;
  const std::string name_;
  std::array<cudaStream_t, kStreams> streams_ = {};
  Cublas cublas_;
  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::unique_ptr<Convolver> convolver_;
  std::string remark_;
};

}  // namespace leeway::cuda
