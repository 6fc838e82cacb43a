// Chooses the backend of a job.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/device/device_module.h"

namespace leeway {

// The libraries that give access to GPUs.
struct DeviceSources {
  // The driver's library. Without it no module is loaded, because most machines have no GPU.
  std::string driver = "libcuda.so.1";
  std::vector<std::string> modules = ModulePlaces();
};

struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  // One line for the log: the choice, and the reason if `auto` chose the CPU.
  std::string note;
  // The bus id of a GPU; empty if it is not known (LeewayDeviceInfo).
  std::string pci_bus_id;
  // The library that multiplies on a CPU, with its version and the processor's instructions that it
  // uses. The bits of results depend on them. Empty if the backend has no such library.
  std::string library;
};

// Makes the backend for `workers.device` and `workers.precision`, with `workers.threads` on a CPU.
// If `workers.device` names no number, the worker takes GPU `rank` modulo the number of GPUs.
// RESOURCE_EXHAUSTED if threads cannot be started. For GPUs also the errors of DeviceModule, but
// `auto` then takes the CPU instead.
absl::StatusOr<ChosenBackend> ChooseBackend(const v1::Workers& workers, uint32_t rank,
                                            const DeviceSources& sources);

// Makes the backend of the worker of `rank` by ChooseBackend, and logs the note. For a GPU, the
// threads of this process move to the processors near it (placement.h).
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const v1::Workers& workers, uint32_t rank);

// Makes a CPU backend in fp32, whatever `workers` say. It is for the launcher, whose machine may
// have no GPU.
absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const v1::Workers& workers);

// Lists the GPUs of this machine; an error says why it has none. The calling process must not fork
// afterwards.
absl::StatusOr<std::vector<LeewayDeviceInfo>> ListDevices(const DeviceSources& sources);

}  // namespace leeway
