// This machine as the place of a job's processes.
#pragma once

#include <memory>
#include <string>

#include "common/loopback.h"
#include "launcher/supervision/job_process.h"

namespace leeway {

class LocalHosts : public JobHosts {
 public:
  // `program_dir`: where leeway-server and leeway-worker are.
  explicit LocalHosts(std::string program_dir) : program_dir_(std::move(program_dir)) {}

  std::string ListenAddress(uint32_t index) const override { return LoopbackHost() + ":0"; }
  absl::StatusOr<std::unique_ptr<JobProcess>> Start(const Launch& launch) override;

 private:
  const std::string program_dir_;
};

}  // namespace leeway
