// Which backend a job gets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/device/device_module.h"

namespace leeway {

// Where GPUs come from.
struct DeviceSources {
  // The driver's library. Without it no module is loaded: most machines have none.
  std::string driver = "libcuda.so.1";
  std::vector<std::string> modules = ModulePlaces();
};

struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  // One line for the log: what was chosen, and for `auto` on the CPU why.
  std::string note;
  // Of a GPU, as far as it is known (LeewayDeviceInfo).
  std::string pci_bus_id;
  // By which a CPU multiplies, with its version and the processor's instructions that it uses, on
  // which bits depend. Empty: by none that chooses these.
  std::string library;
};

// The backend for `workers.device` and `workers.precision`, with `workers.threads` on a CPU.
// Without a number of its own the worker takes GPU `rank` modulo how many there are.
// RESOURCE_EXHAUSTED if threads cannot be started. For GPUs the errors of DeviceModule; `auto`
// takes the CPU instead.
absl::StatusOr<ChosenBackend> ChooseBackend(const v1::Workers& workers, uint32_t rank,
                                            const DeviceSources& sources);

// What the worker of `rank` computes on: ChooseBackend's, and the note is logged. For a GPU this
// process's threads move to the processors near it (placement.h).
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const v1::Workers& workers, uint32_t rank);

// The CPU in fp32, whatever the workers have: for the launcher, whose machine may have no GPU.
absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const v1::Workers& workers);

// The GPUs of this machine, or why there are none. A process that asks must not fork afterwards.
absl::StatusOr<std::vector<LeewayDeviceInfo>> ListDevices(const DeviceSources& sources);

}  // namespace leeway
