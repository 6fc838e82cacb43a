// Turns CUDA's reports on a machine's devices into errors that say what to do. The functions are
// pure, so tests without a GPU cover all of them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::cuda {

// Versions of CUDA in CUDA's own numbering, where 13000 is version 13.0.
struct CudaVersions {
  // The driver's version; 0 if no driver is installed.
  int driver = 0;
  // The version of CUDA that this module was built with.
  int runtime = 0;
};

// Checks the result of counting the devices. Returns FAILED_PRECONDITION if the driver is missing
// or too old, and NOT_FOUND if the driver sees no device.
absl::Status CheckCount(Code code, int count, const CudaVersions& versions,
                        absl::string_view description);

// Returns OUT_OF_RANGE if no device has the number `index`.
absl::Status CheckIndex(uint32_t index, int count);

// Returns UNIMPLEMENTED if the device's capability is below `oldest`. Both are 10 * major + minor.
absl::Status CheckCapability(absl::string_view device, int capability, int oldest);

// Returns UNIMPLEMENTED if the device lacks the precision. TF32 and bf16 need capability 8.0.
absl::Status CheckPrecision(absl::string_view device, int capability, Precision precision);

// Returns the error of a device's first use. UNAVAILABLE means that another process uses the device
// exclusively. RESOURCE_EXHAUSTED means that the device has no memory for a context. UNIMPLEMENTED
// means that the module has no kernels for its architecture. Any other error is INTERNAL.
absl::Status OpenError(Code code, absl::string_view device, absl::string_view description);

// Returns FAILED_PRECONDITION if the environment variable `name` with `value` makes cuBLAS compute
// with less precision than fp32. `value` is null if the variable is not set.
absl::Status CheckPrecisionSetting(const char* name, const char* value);

}  // namespace leeway::cuda
