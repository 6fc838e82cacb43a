// The leeway-server processes of a job in a temporary folder, started as by the launcher.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/temporary_folder.h"
#include "common/process/process.h"

namespace leeway {

// When this object or this process ends, the servers are killed without a checkpoint, and the
// folder is removed. Not thread-safe.
class RealServers {
 public:
  // Starts the servers. `yaml` is a job with this number of servers. The programs are in
  // `program_folder`. If a server does not start, the error has its log.
  static absl::StatusOr<std::unique_ptr<RealServers>> Start(const std::string& program_folder,
                                                            const std::string& yaml,
                                                            uint32_t servers);
  RealServers(const RealServers&) = delete;
  RealServers& operator=(const RealServers&) = delete;

  // Returns the coordinator's address as host:port.
  const std::string& coordinator() const { return coordinator_; }
  const std::string& folder() const { return folder_->path(); }
  // Returns the job's run folder, in which the coordinator writes.
  std::string run_folder() const { return folder() + "/run"; }
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

  // Return the resident memory of each server: now (MemoryBytes), and the highest so far.
  std::vector<uint64_t> MemoryBytes() const;
  std::vector<uint64_t> PeakBytes() const;
  // Returns the processor time of all servers together.
  double CpuSeconds() const;

 private:
  RealServers() = default;
  absl::Status StartServer(const std::string& program_folder, uint32_t index);

  std::unique_ptr<TemporaryFolder> folder_;
  std::string coordinator_;
  // Destroyed before the folder. The destructors kill the servers, because an orderly end would
  // write a useless checkpoint.
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace leeway
