// What CUDA says of a machine's devices, as errors that say what to do. Pure, so that tests without
// a GPU have all of them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/runtime.h"

namespace leeway::cuda {

// As CUDA gives them: 13000 is 13.0.
struct CudaVersions {
  // Of the driver; 0: there is none.
  int driver = 0;
  // That this module was built with.
  int runtime = 0;
};

// Of asking how many devices there are. FAILED_PRECONDITION: no driver, or too old a one;
// NOT_FOUND: no device.
absl::Status CheckCount(Code code, int count, const CudaVersions& versions,
                        absl::string_view description);

// OUT_OF_RANGE.
absl::Status CheckIndex(uint32_t index, int count);

// Versions as 10 * major + minor. UNIMPLEMENTED.
absl::Status CheckCapability(absl::string_view device, int capability, int oldest);

// TF32 and bf16 came with 8.0. UNIMPLEMENTED.
absl::Status CheckPrecision(absl::string_view device, int capability, Precision precision);

// Of the first use of a device. UNAVAILABLE: another process has it for itself; RESOURCE_EXHAUSTED:
// no memory for a context; UNIMPLEMENTED: no kernels for its architecture; else INTERNAL.
absl::Status OpenError(Code code, absl::string_view device, absl::string_view description);

// Settings of the environment under which cuBLAS would compute with less than fp32, by name; null:
// not set. FAILED_PRECONDITION.
absl::Status CheckPrecisionSetting(const char* name, const char* value);

}  // namespace leeway::cuda
