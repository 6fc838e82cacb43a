// The C interface between a module of devices and the program that loads it. The program first
// reads the table, and compares version and build. A C++ object (a Backend) may cross the interface
// only if both are the same, because the build identifies the headers with which such an object is
// compiled.
//
// The module never throws across this interface, and is never unloaded.
#pragma once

#include <cstdint>

namespace leeway {

// The version of this interface.
inline constexpr uint32_t kModuleAbi = 2;
inline constexpr char kModuleEntry[] = "leeway_device_module";

extern "C" {

struct LeewayDeviceInfo {
  char name[128];
  int32_t capability_major;
  int32_t capability_minor;
  uint64_t memory_bytes;
  uint64_t free_bytes;
  // The kernel's name for the device (0000:65:00.0), which does not depend on CUDA_VISIBLE_DEVICES.
  // Empty if it is not known.
  char pci_bus_id[32];
};

// Both functions return an absl::StatusCode. If the code is not 0, they write the reason to their
// last buffer argument.
struct LeewayDeviceModule {
  // These two fields have the same offsets in every version.
  uint32_t abi;
  const char* build;
  // Writes up to `capacity` devices to `devices`, and the total number of devices to *count. If
  // `measure` is 0, sets free_bytes to 0 and does not measure it, because that uses memory of each
  // device until the process ends.
  int (*list)(struct LeewayDeviceInfo* devices, uint32_t capacity, uint32_t measure,
              uint32_t* count, char* error, uint32_t error_bytes);
  // Opens a device. `precision` is a leeway::Precision. Sets *backend to a leeway::Backend, which
  // the caller must delete. If the function returns 0, `text` has a remark for the log or is empty.
  int (*open)(uint32_t index, uint32_t precision, void** backend, char* text, uint32_t text_bytes);
};

}  // extern "C"

using ModuleEntry = const LeewayDeviceModule* (*)();

}  // namespace leeway
