// Runs the processes of a job from their start to their end, and reports how the coordinator ended
// the job.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/security/settings.h"
#include "launcher/hosts/ssh_hosts.h"
#include "launcher/supervision/signals.h"
#include "launcher/supervision/supervisor.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"
#include "run/run_folder.h"
#include "run/run_so_far.h"

namespace leeway {

// The settings that are decided before any process starts.
struct PlannedRun {
  v1::TrainingJob job;
  std::string data_dir;
  // The window in seconds. Only restarts within the window count against max_restarts.
  double restart_window = 0;
  // Whether --data named the data folder.
  bool data_given = false;
  uint64_t steps_per_epoch = 0;
  RunSoFar so_far;
  SecurityFlags security;
  // The hosts of --hosts. If null, the processes run on this machine.
  std::unique_ptr<SshHosts> hosts;
  bool insecure = false;
  // The program of an external job's workers, with its path. If empty, workers run leeway-worker.
  std::vector<std::string> command;
};

struct Ran {
  RunOutcome outcome;
  // How the coordinator ended the job. Absent if it has not ended the job.
  std::optional<v1::CoordinatorRecord> end;
};

// Runs the processes until all have ended. Returns an error if they could not be started.
absl::StatusOr<Ran> RunProcesses(const PlannedRun& plan, const RunFolder& run,
                                 SignalSource& signals);

}  // namespace leeway
