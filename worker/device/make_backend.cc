#include "worker/device/make_backend.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <dlfcn.h>
#include <spdlog/spdlog.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/device.h"
#include "worker/compute/eigen/eigen_backend.h"
#include "worker/device/job_precision.h"
#include "worker/device/placement.h"

namespace leeway {
namespace {

// Loads the module if the driver's library is installed.
absl::StatusOr<DeviceModule> LoadModule(const DeviceSources& sources) {
  if (dlopen(sources.driver.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no NVIDIA driver is installed on this machine (", sources.driver,
                     "): install one, and check that nvidia-smi lists the GPU"));
  }
  return DeviceModule::Load(sources.modules);
}

absl::StatusOr<ChosenBackend> OpenGpu(std::optional<uint32_t> wanted, Precision precision,
                                      uint32_t rank, const DeviceSources& sources) {
  ASSIGN_OR_RETURN(const DeviceModule module, LoadModule(sources));
  ASSIGN_OR_RETURN(const std::vector<LeewayDeviceInfo> devices,
                   module.List(DeviceModule::Free::kUnknown));
  const uint32_t count = std::max<uint32_t>(static_cast<uint32_t>(devices.size()), 1);
  const uint32_t index = wanted.value_or(rank % count);
  ChosenBackend chosen;
  ASSIGN_OR_RETURN(OpenedDevice opened, module.Open(index, precision));
  chosen.backend = std::move(opened.backend);
  chosen.note = absl::StrCat(
      "computing on cuda:", index,
      index < devices.size() ? absl::StrCat(", ", devices[index].name) : "",
      precision == Precision::kFp32 ? "" : absl::StrCat(" in ", PrecisionName(precision)));
  if (index < devices.size()) chosen.pci_bus_id = devices[index].pci_bus_id;
  if (!opened.remark.empty()) absl::StrAppend(&chosen.note, "; ", opened.remark);
  return chosen;
}

absl::StatusOr<ChosenBackend> TakeCpu(const v1::Workers& workers, std::string note) {
  const Precision precision = PrecisionOf(workers);
  if (precision != Precision::kFp32) {
    absl::StrAppend(&note, "; it rounds the factors of products to ", PrecisionName(precision),
                    " as a GPU does, which takes longer than fp32; use this only to try it out");
  }
  ASSIGN_OR_RETURN(auto backend, EigenBackend::Make(workers.threads(), precision));
  std::string library = backend->library();
  return ChosenBackend{std::move(backend), std::move(note), "", std::move(library)};
}

}  // namespace

absl::StatusOr<ChosenBackend> ChooseBackend(const v1::Workers& workers, uint32_t rank,
                                            const DeviceSources& sources) {
  const auto device = ParseDevice(workers.device());
  if (!device.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workers.device: unknown device '", workers.device(), "'; use auto, cpu, cuda or cuda:N"));
  }
  if (device->kind == DeviceChoice::Kind::kCpu) return TakeCpu(workers, "computing on the CPU");
  auto chosen = OpenGpu(device->index, PrecisionOf(workers), rank, sources);
  if (chosen.ok()) return chosen;
  if (device->kind == DeviceChoice::Kind::kCuda) {
    return Annotate(chosen.status(), absl::StrCat("workers.device: ", workers.device()));
  }
  return TakeCpu(workers, absl::StrCat("computing on the CPU (workers.device: auto): ",
                                       chosen.status().message()));
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const v1::Workers& workers, uint32_t rank) {
  ASSIGN_OR_RETURN(ChosenBackend chosen, ChooseBackend(workers, rank, {}));
  spdlog::info("{}", chosen.note);
  if (!chosen.library.empty()) spdlog::info("products and convolutions use {}", chosen.library);
  if (!chosen.pci_bus_id.empty()) spdlog::info("{}", PinNear(chosen.pci_bus_id));
  return std::move(chosen.backend);
}

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const v1::Workers& workers) {
  return EigenBackend::Make(workers.threads());
}

absl::StatusOr<std::vector<LeewayDeviceInfo>> ListDevices(const DeviceSources& sources) {
  ASSIGN_OR_RETURN(const DeviceModule module, LoadModule(sources));
  return module.List(DeviceModule::Free::kMeasured);
}

}  // namespace leeway
