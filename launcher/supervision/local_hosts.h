// Runs a job's processes on this machine.
#pragma once

#include <memory>
#include <string>

#include "common/loopback.h"
#include "launcher/supervision/job_process.h"

namespace leeway {

class LocalHosts : public JobHosts {
 public:
  // `program_dir` is the folder with leeway-server and leeway-worker.
  explicit LocalHosts(std::string program_dir) : program_dir_(std::move(program_dir)) {}

  std::string ServerListens(uint32_t index) const override { return LoopbackHost() + ":0"; }
  std::string WorkerListens(uint32_t rank) const override { return LoopbackHost() + ":0"; }
  absl::StatusOr<std::unique_ptr<JobProcess>> Start(const Launch& launch) override;

 private:
  const std::string program_dir_;
};

}  // namespace leeway
