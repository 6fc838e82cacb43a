// The module that computes on GPUs. It is loaded at run time, so programs run without it and
// without CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"
#include "worker/compute/precision.h"
#include "worker/device/module_abi.h"

namespace leeway {

// The paths at which the module is searched for, in order. If LEEWAY_CUDA_MODULE is set, it is the
// only one. Otherwise they are a file beside the program, and the file that the package installs.
std::vector<std::string> ModulePlaces();

struct OpenedDevice {
  std::unique_ptr<Backend> backend;
  // The module's remark for the log, or empty.
  std::string remark;
};

// A loaded module. Cheap to copy.
class DeviceModule {
 public:
  // Loads the first of `places` that exists. NOT_FOUND: none exists. FAILED_PRECONDITION: the
  // module cannot be loaded, or is not of this program's build.
  static absl::StatusOr<DeviceModule> Load(const std::vector<std::string>& places);

  enum class Free { kUnknown, kMeasured };

  // Lists the devices. FAILED_PRECONDITION: the driver is missing or too old. NOT_FOUND: this
  // machine has no device. Measuring the free memory makes a context on every device, which lasts
  // as long as the process. Workers must not do that, because they compute on one device only.
  absl::StatusOr<std::vector<LeewayDeviceInfo>> List(Free free) const;
  // Opens device `index`. Errors are those of List, and OUT_OF_RANGE: no device has that number;
  // UNIMPLEMENTED: its architecture is too old for the module or for the precision; UNAVAILABLE: it
  // is busy; RESOURCE_EXHAUSTED: it has no memory left.
  absl::StatusOr<OpenedDevice> Open(uint32_t index, Precision precision) const;

 private:
  explicit DeviceModule(const LeewayDeviceModule& table) : table_(&table) {}

  const LeewayDeviceModule* table_;
};

}  // namespace leeway
