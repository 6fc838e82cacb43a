// The jobs of the benchmarks: real jobs whose workers compute nothing.
#pragma once

#include <cstdint>
#include <string>

#include "bench/base/transfer.h"

namespace leeway {

struct BenchJobOptions {
  // "sync", "bounded" (by 2 clocks) or "async".
  std::string mode = "sync";
  // What the servers keep: "sgd" (no slots), "momentum" (one), "adam" (two).
  std::string update = "sgd";
  Wire wire = Wire::kAuto;
  // Names as in job.compression.
  std::string contributions = "none";
  std::string weights = "none";
  uint32_t servers = 1;
  uint32_t workers = 1;
  // 0: the job's default.
  uint64_t block_bytes = 0;
};

// The YAML of the job. The job never comes to its end.
std::string BenchJobYaml(const BenchJobOptions& options);

}  // namespace leeway
