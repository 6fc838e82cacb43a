// The jobs of the benchmarks: real ones, whose workers compute nothing.
#pragma once

#include <cstdint>
#include <string>

#include "bench/base/transfer.h"

namespace leeway {

struct BenchJobOptions {
  // "sync", "bounded" (by 2 clocks), "async".
  std::string mode = "sync";
  // What the servers keep: "sgd" (no slots), "momentum" (one), "adam" (two).
  std::string update = "sgd";
  Wire wire = Wire::kAuto;
  // As in job.compression.
  std::string contributions = "none";
  std::string weights = "none";
  uint32_t servers = 1;
  uint32_t workers = 1;
  // 0: the job's default.
  uint64_t block_bytes = 0;
};

// As a job file would say it; it never comes to its end.
std::string BenchJobYaml(const BenchJobOptions& options);

}  // namespace leeway
