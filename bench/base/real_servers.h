// leeway-server processes of a job, as the launcher starts them, in a temporary folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/temporary_folder.h"
#include "common/process/process.h"

namespace leeway {

// Killed at the end, without a checkpoint, and the folder removed, however this process ends. Not
// thread-safe.
class RealServers {
 public:
  // `yaml`: the job, of so many servers. The programs are in `program_folder`. An error of a server
  // that does not start has its log.
  static absl::StatusOr<std::unique_ptr<RealServers>> Start(const std::string& program_folder,
                                                            const std::string& yaml,
                                                            uint32_t servers);
  RealServers(const RealServers&) = delete;
  RealServers& operator=(const RealServers&) = delete;

  // host:port.
  const std::string& coordinator() const { return coordinator_; }
  const std::string& folder() const { return folder_->path(); }
  // Where the coordinator writes what happens.
  std::string run_folder() const { return folder() + "/run"; }
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

  // Resident, by server: now, and the most so far.
  std::vector<uint64_t> MemoryBytes() const;
  std::vector<uint64_t> PeakBytes() const;
  // Of processor time, all servers.
  double CpuSeconds() const;

 private:
  RealServers() = default;
  absl::Status StartServer(const std::string& program_folder, uint32_t index);

  std::unique_ptr<TemporaryFolder> folder_;
  std::string coordinator_;
  // Let go of before the folder, and so killed: an orderly end would write a checkpoint that nobody
  // wants.
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace leeway
