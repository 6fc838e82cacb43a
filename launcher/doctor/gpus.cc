#include "launcher/doctor/gpus.h"

#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "common/status.h"
#include "common/text/format.h"
#include "worker/device/link_rates.h"
#include "worker/device/placement.h"

namespace leeway {
namespace {

constexpr double kGiB = 1 << 30;

// Measures the copies between host and GPU. Returns zeros if the GPU cannot be opened or fails, so
// that the list still shows the other GPUs. A job reports the cause.
LinkRates LinkOf(size_t number, const DeviceSources& sources) {
  v1::Workers workers;
  workers.set_device(absl::StrCat("cuda:", number));
  const auto chosen = ChooseBackend(workers, 0, sources);
  if (!chosen.ok()) return {};
  return MeasureLinkRates(*chosen->backend).value_or(LinkRates());
}

std::string LinkText(const Json& gpu) {
  const double up = gpu.value("bytes_per_second_up", 0.0);
  const double down = gpu.value("bytes_per_second_down", 0.0);
  if (up == 0 || down == 0) return "";
  return absl::StrCat(", copies ", Fixed(up / 1e9, 1), " GB/s up and ", Fixed(down / 1e9, 1),
                      " GB/s down");
}

absl::StatusOr<BenchService> List(const DeviceSources& sources) {
  ASSIGN_OR_RETURN(const std::vector<LeewayDeviceInfo> found, ListDevices(sources));
  Json devices = Json::array();
  for (const LeewayDeviceInfo& device : found) {
    const LinkRates link = LinkOf(devices.size(), sources);
    const DevicePlace place = PlaceOf(device.pci_bus_id);
    devices.push_back({{"device", absl::StrCat("cuda:", devices.size())},
                       {"name", Printable(device.name)},
                       {"compute_capability",
                        absl::StrCat(device.capability_major, ".", device.capability_minor)},
                       {"memory_bytes", device.memory_bytes},
                       {"free_bytes", device.free_bytes},
                       {"pci_bus_id", Printable(device.pci_bus_id)},
                       {"numa_node", place.numa_node},
                       {"processors", ProcessorsText(place.processors)},
                       {"bytes_per_second_up", link.up},
                       {"bytes_per_second_down", link.down}});
  }
  return BenchService{.hello = {{"devices", devices}},
                      .handle = [](const Json&) { return Json(); }};
}

// Describes the GPU's place in the machine, as far as it is known.
std::string PlaceText(const Json& gpu) {
  const std::string processors = gpu.value("processors", "");
  const int node = gpu.value("numa_node", -1);
  return absl::StrCat(node < 0 ? "" : absl::StrCat(", NUMA node ", node),
                      processors.empty() ? "" : absl::StrCat(", near processors ", processors));
}

}  // namespace

GpuFindings FindGpus(const DeviceSources& sources) {
  const auto lister = BenchProcess::Start("looking for GPUs", [&] { return List(sources); });
  if (!lister.ok()) return {.none = std::string(lister.status().message())};
  GpuFindings findings{.devices = (*lister)->hello()["devices"]};
  if (findings.devices.empty()) findings.none = "the driver finds none";
  return findings;
}

std::string GpusText(const GpuFindings& gpus) {
  if (!gpus.none.empty()) return absl::StrCat("No GPU: ", gpus.none, "\n");
  std::string text;
  for (const Json& gpu : gpus.devices) {
    absl::StrAppend(&text, "GPU ", gpu.value("device", ""), ": ", gpu.value("name", ""),
                    ", compute capability ", gpu.value("compute_capability", ""), ", ",
                    Fixed(gpu.value("memory_bytes", 0.0) / kGiB, 1), " GiB of memory, ",
                    Fixed(gpu.value("free_bytes", 0.0) / kGiB, 1), " free", LinkText(gpu),
                    PlaceText(gpu), "\n");
  }
  return text;
}

Json GpusJson(const GpuFindings& gpus) {
  Json document = {{"devices", gpus.devices}};
  if (!gpus.none.empty()) document["none"] = gpus.none;
  return document;
}

}  // namespace leeway
