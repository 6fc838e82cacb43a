// Finds the GPUs on which workers of this machine could compute.
#pragma once

#include <string>

#include "bench/base/bench_process.h"
#include "worker/device/make_backend.h"

namespace leeway {

struct GpuFindings {
  // [{"device": "cuda:0", "name", "compute_capability", "memory_bytes", "free_bytes",
  //   "pci_bus_id", "numa_node" (-1: not known), "processors" (near the GPU; "": not known),
  //   "bytes_per_second_up", "bytes_per_second_down" (copies of pinned memory; 0: not known)}]
  Json devices = Json::array();
  // The reason why no GPU was found. Empty if a GPU was found.
  std::string none;
};

// Looks for GPUs in a separate process, because a process that has used a GPU must not fork, and
// the doctor forks.
GpuFindings FindGpus(const DeviceSources& sources);

std::string GpusText(const GpuFindings& gpus);
// {"devices": [...], "none": "..." (if no GPU was found)}
Json GpusJson(const GpuFindings& gpus);

}  // namespace leeway
