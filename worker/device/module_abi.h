// What a module of devices and the program that loads it say to each other, in C. The program asks
// for the table, compares version and build, and only then lets a C++ object (a Backend) cross: the
// build names the headers that such an object is made of.
//
// The module never throws over this border, and is never unloaded.
#pragma once

#include <cstdint>

namespace leeway {

// Of this header.
inline constexpr uint32_t kModuleAbi = 2;
inline constexpr char kModuleEntry[] = "leeway_device_module";

extern "C" {

struct LeewayDeviceInfo {
  char name[128];
  int32_t capability_major;
  int32_t capability_minor;
  uint64_t memory_bytes;
  uint64_t free_bytes;
  // As the kernel names it (0000:65:00.0), whatever CUDA_VISIBLE_DEVICES hides; empty: not known.
  char pci_bus_id[32];
};

// Both functions return an absl::StatusCode, and leave a text in `error` if it is not 0.
struct LeewayDeviceModule {
  // These two never move.
  uint32_t abi;
  const char* build;
  // Up to `capacity` devices; *count: how many there are. free_bytes is 0 unless `measure` is not:
  // to ask for it takes memory of each device for as long as the process lives.
  int (*list)(struct LeewayDeviceInfo* devices, uint32_t capacity, uint32_t measure,
              uint32_t* count, char* error, uint32_t error_bytes);
  // `precision`: a leeway::Precision. *backend: a leeway::Backend, which the caller deletes. Where
  // the answer is 0, `text` is a remark for the log, or empty.
  int (*open)(uint32_t index, uint32_t precision, void** backend, char* text, uint32_t text_bytes);
};

}  // extern "C"

using ModuleEntry = const LeewayDeviceModule* (*)();

}  // namespace leeway
