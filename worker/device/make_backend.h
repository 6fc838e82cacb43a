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
  // The file name of the driver's library. If the driver is missing, as on machines without a GPU,
  // the module is not loaded.
  std::string driver = "libcuda.so.1";
  std::vector<std::string> modules = ModulePlaces();
};

struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  // A line for the log: which device was chosen, and the reason if `auto` chose the CPU.
  std::string note;
  // The bus id of a GPU; empty if it is not known (LeewayDeviceInfo).
  std::string pci_bus_id;
  // The library that computes products on a CPU, with its version and the processor instructions
  // that it uses. The bits of results depend on all three. Empty if the backend uses no library.
  std::string library;
};

// Makes the backend for `workers.device` and `workers.precision`, with `workers.threads` threads on
// a CPU. If `workers.device` has no number, the worker uses GPU `rank` modulo the number of GPUs.
// Returns RESOURCE_EXHAUSTED if threads cannot be started. For GPUs also returns the errors of
// DeviceModule; `auto` uses the CPU in these cases.
absl::StatusOr<ChosenBackend> ChooseBackend(const v1::Workers& workers, uint32_t rank,
                                            const DeviceSources& sources);

// Makes the backend of the worker with rank `rank` by ChooseBackend, and logs the note. For a GPU,
// the threads of this process move to the processors near that GPU (placement.h).
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const v1::Workers& workers, uint32_t rank);

// Makes a CPU backend in fp32, whatever `workers` says. The launcher uses it, because the
// launcher's machine may have no GPU.
absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const v1::Workers& workers);

// Lists the GPUs of this machine. If the machine has no GPU, returns an error that says why. The
// calling process must not fork afterwards.
absl::StatusOr<std::vector<LeewayDeviceInfo>> ListDevices(const DeviceSources& sources);

}  // namespace leeway
