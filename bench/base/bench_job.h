// The jobs of the benchmarks: real jobs whose workers compute nothing.
#pragma once

#include <cstdint>
#include <string>

#include "bench/base/transfer.h"

namespace leeway {

struct BenchJobOptions {
  // "sync", "bounded" (by 2 clocks) or "async".
  std::string mode = "sync";
  // The servers' update rule: "sgd" (no slots), "momentum" (one slot) or "adam" (two slots).
  std::string update = "sgd";
  Wire wire = Wire::kAuto;
  // The codecs of contributions and weights, with names as in job.compression.
  std::string contributions = "none";
  std::string weights = "none";
  uint32_t servers = 1;
  uint32_t workers = 1;
  // The size of a block. 0 means the job's default.
  uint64_t block_bytes = 0;
};

// Returns the YAML of the job, which never ends by itself.
std::string BenchJobYaml(const BenchJobOptions& options);

}  // namespace leeway
