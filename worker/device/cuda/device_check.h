// Turns CUDA's reports on a machine's devices into errors that say what to do. The functions are
// pure, so tests without a GPU cover all of them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::cuda {

// Versions as CUDA numbers them: 13000 is 13.0.
struct CudaVersions {
  // The driver's version; 0 if no driver is installed.
  int driver = 0;
  // The version that this module was built with.
  int runtime = 0;
};

// The result of counting the devices. FAILED_PRECONDITION: the driver is missing or too old.
// NOT_FOUND: the driver sees no device.
absl::Status CheckCount(Code code, int count, const CudaVersions& versions,
                        absl::string_view description);

// OUT_OF_RANGE if no device has the number `index`.
absl::Status CheckIndex(uint32_t index, int count);

// UNIMPLEMENTED if the device's capability is below `oldest`. Both are 10 * major + minor.
absl::Status CheckCapability(absl::string_view device, int capability, int oldest);

// UNIMPLEMENTED if the device lacks the precision: TF32 and bf16 need capability 8.0.
absl::Status CheckPrecision(absl::string_view device, int capability, Precision precision);

// The result of the first use of a device. UNAVAILABLE: another process uses it exclusively.
// RESOURCE_EXHAUSTED: it has no memory for a context. UNIMPLEMENTED: the module has no kernels for
// its architecture. Otherwise INTERNAL.
absl::Status OpenError(Code code, absl::string_view device, absl::string_view description);

// FAILED_PRECONDITION if the environment variable `name` with `value` lets cuBLAS compute with less
// than fp32. `value` is null if the variable is not set.
absl::Status CheckPrecisionSetting(const char* name, const char* value);

}  // namespace leeway::cuda
