// The real servers of a growth measurement.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/launcher/process.h"

namespace leeway {

struct GrowthJobOptions {
  // "sync", "bounded" (by 2 clocks), "async".
  std::string mode = "sync";
  uint32_t servers = 4;
  uint32_t workers = 100;
  uint64_t block_bytes = 4096;
  std::string program_folder;
};

// leeway-server processes, as the launcher starts them; killed at the end. Not thread-safe.
class GrowthJob {
 public:
  static absl::StatusOr<std::unique_ptr<GrowthJob>> Start(const GrowthJobOptions& options);
  ~GrowthJob();

  const std::string& coordinator() const { return coordinator_; }
  // Resident, by server: now, and the most so far.
  std::vector<uint64_t> MemoryBytes() const;
  std::vector<uint64_t> PeakBytes() const;
  // Of processor time, all servers.
  double CpuSeconds() const;

 private:
  GrowthJob() = default;
  absl::Status StartServer(const GrowthJobOptions& options, uint32_t index);

  std::string folder_;
  std::string coordinator_;
  std::vector<std::unique_ptr<Process>> servers_;
};

}  // namespace leeway
