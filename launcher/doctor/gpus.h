// The GPUs that workers of this machine could compute on.
#pragma once

#include <string>

#include "bench/base/bench_process.h"
#include "worker/device/make_backend.h"

namespace leeway {

struct GpuFindings {
  // [{"device": "cuda:0", "name", "compute_capability", "memory_bytes", "free_bytes",
  //   "pci_bus_id", "numa_node" (-1: not known), "processors" (near it; "": not known),
  //   "bytes_per_second_up", "bytes_per_second_down" (copies of pinned memory; 0: not known)}]
  Json devices = Json::array();
  // Why there are none; empty: there are some.
  std::string none;
};

// Asks in a process of its own: one that has asked a GPU must not fork, as the doctor does.
GpuFindings FindGpus(const DeviceSources& sources);

std::string GpusText(const GpuFindings& gpus);
// {"devices": [...], "none": "..." (if there are none)}
Json GpusJson(const GpuFindings& gpus);

}  // namespace leeway
