#include "launcher/doctor/gpus.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "bench/base/format.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr double kGiB = 1 << 30;

absl::StatusOr<BenchService> List(const DeviceSources& sources) {
  ASSIGN_OR_RETURN(const std::vector<LeewayDeviceInfo> found, ListDevices(sources));
  Json devices = Json::array();
  for (const LeewayDeviceInfo& device : found) {
    devices.push_back({{"device", absl::StrCat("cuda:", devices.size())},
                       {"name", Printable(device.name)},
                       {"compute_capability",
                        absl::StrCat(device.capability_major, ".", device.capability_minor)},
                       {"memory_bytes", device.memory_bytes},
                       {"free_bytes", device.free_bytes}});
  }
  return BenchService{.hello = {{"devices", devices}},
                      .handle = [](const Json&) { return Json(); }};
}

}  // namespace

GpuFindings FindGpus(const DeviceSources& sources) {
  const auto lister = BenchProcess::Start("looking for GPUs", [&] { return List(sources); });
  if (!lister.ok()) return {.none = std::string(lister.status().message())};
  GpuFindings findings{.devices = (*lister)->hello()["devices"]};
  if (findings.devices.empty()) findings.none = "the driver sees none";
  return findings;
}

std::string GpusText(const GpuFindings& gpus) {
  if (!gpus.none.empty()) return absl::StrCat("No GPU: ", gpus.none, "\n");
  std::string text;
  for (const Json& gpu : gpus.devices) {
    absl::StrAppend(&text, "GPU ", gpu.value("device", ""), ": ", gpu.value("name", ""),
                    ", compute capability ", gpu.value("compute_capability", ""), ", ",
                    Fixed(gpu.value("memory_bytes", 0.0) / kGiB, 1), " GiB of memory, ",
                    Fixed(gpu.value("free_bytes", 0.0) / kGiB, 1), " free\n");
  }
  return text;
}

Json GpusJson(const GpuFindings& gpus) {
  Json document = {{"devices", gpus.devices}};
  if (!gpus.none.empty()) document["none"] = gpus.none;
  return document;
}

}  // namespace leeway
