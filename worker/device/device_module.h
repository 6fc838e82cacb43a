// The module that computes on GPUs. Programs load it at run time, so they also run without the
// module and without CUDA.
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

// Returns the paths at which the module is searched for, in order. If LEEWAY_CUDA_MODULE is set, it
// is the only path. Otherwise the paths are a file beside the program, and the file that the
// package installs.
std::vector<std::string> ModulePlaces();

struct OpenedDevice {
  std::unique_ptr<Backend> backend;
  // The module's remark for the log, or an empty string.
  std::string remark;
};

// A loaded module. Cheap to copy.
class DeviceModule {
 public:
  // Loads the first of `places` that exists. Returns NOT_FOUND if no such file exists. Returns
  // FAILED_PRECONDITION if the module cannot be loaded, or is not from the same build as this
  // program.
  static absl::StatusOr<DeviceModule> Load(const std::vector<std::string>& places);

  enum class Free { kUnknown, kMeasured };

  // Lists the devices. Returns FAILED_PRECONDITION if the driver is missing or too old, and
  // NOT_FOUND if this machine has no device. Measuring the free memory makes a context on every
  // device, which lasts as long as the process. Workers must not measure it, because each worker
  // computes on one device only.
  absl::StatusOr<std::vector<LeewayDeviceInfo>> List(Free free) const;
  // Opens device `index`. Returns the errors of List, and these: OUT_OF_RANGE if no device has that
  // number; UNIMPLEMENTED if the device's architecture is too old for the module or for the
  // precision; UNAVAILABLE if the device is busy; RESOURCE_EXHAUSTED if the device has no memory
  // left.
  absl::StatusOr<OpenedDevice> Open(uint32_t index, Precision precision) const;

 private:
  explicit DeviceModule(const LeewayDeviceModule& table) : table_(&table) {}

  const LeewayDeviceModule* table_;
};

}  // namespace leeway
