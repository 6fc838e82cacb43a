// The module that computes on GPUs, loaded at run time: programs run without it, and without CUDA.
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

// Where the module is looked for, in order: the file that LEEWAY_CUDA_MODULE names, and nowhere
// else if that is set; beside the program; where the package has it.
std::vector<std::string> ModulePlaces();

struct OpenedDevice {
  std::unique_ptr<Backend> backend;
  // For the log: what the module has to say of it; empty: nothing.
  std::string remark;
};

// A loaded module. Cheap to copy.
class DeviceModule {
 public:
  // The first of `places` that is there. NOT_FOUND: none is. FAILED_PRECONDITION: it cannot be
  // loaded, or is not of this program's build.
  static absl::StatusOr<DeviceModule> Load(const std::vector<std::string>& places);

  enum class Free { kUnknown, kMeasured };

  // FAILED_PRECONDITION: no driver, or too old a one. NOT_FOUND: no device. What is free is
  // measured by contexts on all of them, which stay: not for a worker, which computes on one.
  absl::StatusOr<std::vector<LeewayDeviceInfo>> List(Free free) const;
  // As List, and: OUT_OF_RANGE: no device of that number. UNIMPLEMENTED: too old an architecture,
  // for the module or for the precision. UNAVAILABLE: busy. RESOURCE_EXHAUSTED: no memory.
  absl::StatusOr<OpenedDevice> Open(uint32_t index, Precision precision) const;

 private:
  explicit DeviceModule(const LeewayDeviceModule& table) : table_(&table) {}

  const LeewayDeviceModule* table_;
};

}  // namespace leeway
