// Describes a job for its supervisor: where its files are, which processes it has, and how long the
// supervisor waits for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/process/process.h"
#include "launcher/supervision/restart_policy.h"

namespace leeway {

struct SupervisorSpec {
  // The run folder, which already has job.yaml: a path or s3://BUCKET/PREFIX.
  std::string run_dir;
  // A folder on this machine. The processes' logs go to logs/ in this folder, and the coordinator's
  // address into the folder itself.
  std::string local_dir;
  std::string data_dir;
  // The variables with which the processes authenticate themselves.
  Environment server_environment;
  Environment worker_environment;
  // The program of an external job's workers, with its path and arguments. The program learns its
  // place in the job from LEEWAY_COORDINATOR and LEEWAY_RANK. If empty, leeway-worker runs.
  std::vector<std::string> worker_command;
  // The values of leeway-worker's --processors, by rank. If empty, no processors are chosen.
  std::vector<std::string> worker_processors;
  bool resume = false;
  // The number of servers at the start.
  uint32_t servers = 1;
  uint32_t workers = 1;
  // Whether the workers are servers, too, because they hold the blocks. If so, each worker needs an
  // address, and only server 0 has a process of its own.
  bool workers_serve = false;
  RestartPolicy::Options restarts;
  // The most seconds that server 0 may take until it listens.
  double start_seconds = 120;
  // The most seconds that a process may be without a sign of life.
  double lease_seconds = 10;
  // The time between two requests for the job's status.
  Duration status_every = std::chrono::seconds(1);
  // Returns true if the run folder's record says that the job is over. The supervisor calls this
  // function if server 0 is another launcher's process, whose exit the supervisor cannot see.
  std::function<bool()> over_on_record;
};

}  // namespace leeway
