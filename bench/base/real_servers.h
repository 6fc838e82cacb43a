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
  // `yaml` is a job with this number of servers. The programs are in `program_folder`. If a server
  // does not start, the error has its log.
  static absl::StatusOr<std::unique_ptr<RealServers>> Start(const std::string& program_folder,
                                                            const std::string& yaml,
                                                            uint32_t servers);
  RealServers(const RealServers&) = delete;
  RealServers& operator=(const RealServers&) = delete;

  // The address as host:port.
  const std::string& coordinator() const { return coordinator_; }
  const std::string& folder() const { return folder_->path(); }
  // The job's run folder, in which the coordinator writes.
  std::string run_folder() const { return folder() + "/run"; }
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

  // The resident memory of each server: now, and the highest so far.
  std::vector<uint64_t> MemoryBytes() const;
  std::vector<uint64_t> PeakBytes() const;
  // Processor time of all servers together.
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
