// Implements the module's C functions (worker/device/module_abi.h).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "absl/status/status.h"
#include "common/status.h"
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/module/gpu_runtime.h"
#include "worker/device/module_abi.h"

namespace leeway::cuda {
namespace {

// Runs `work`, which returns a Status. Only a number and a string leave the module.
template <typename Work>
int Answer(char* error, uint32_t error_bytes, Work work) noexcept {
  const auto say = [&](const char* text, size_t length) {
    std::snprintf(error, error_bytes, "%.*s", static_cast<int>(length), text);
  };
  try {
    const absl::Status status = work();
    if (!status.ok()) say(status.message().data(), status.message().size());
    return static_cast<int>(status.code());
  } catch (const std::exception& fault) {
    say(fault.what(), std::string_view(fault.what()).size());
    return static_cast<int>(absl::StatusCode::kInternal);
  }
}

int List(LeewayDeviceInfo* devices, uint32_t capacity, uint32_t measure, uint32_t* count,
         char* error, uint32_t error_bytes) {
  return Answer(error, error_bytes, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<LeewayDeviceInfo> found, ListDevices(measure != 0));
    *count = static_cast<uint32_t>(found.size());
    std::copy_n(found.begin(), std::min<size_t>(found.size(), capacity), devices);
    return absl::OkStatus();
  });
}

int Open(uint32_t index, uint32_t precision, void** backend, char* text, uint32_t text_bytes) {
  return Answer(text, text_bytes, [&]() -> absl::Status {
    const char* const blocking = std::getenv("LEEWAY_CUDA_BLOCKING");
    const auto factors = static_cast<Precision>(precision);
    ASSIGN_OR_RETURN(std::unique_ptr<GpuRuntime> runtime, GpuRuntime::Open(index, factors));
    const std::string remark = runtime->remark();
    ASSIGN_OR_RETURN(
        std::unique_ptr<Backend> made,
        CudaBackend::Make(std::move(runtime),
                          blocking != nullptr && std::string_view(blocking) == "1", factors));
    std::snprintf(text, text_bytes, "%s", remark.c_str());
    *backend = made.release();
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace leeway::cuda

extern "C" __attribute__((visibility("default"))) const leeway::LeewayDeviceModule*
leeway_device_module() noexcept {
  static constexpr leeway::LeewayDeviceModule kTable = {leeway::kModuleAbi, LEEWAY_MODULE_BUILD,
                                                        leeway::cuda::List, leeway::cuda::Open};
  return &kTable;
}
