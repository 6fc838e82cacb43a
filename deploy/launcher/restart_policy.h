// What to do when a process of the job ends. Pure: no processes, no clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/clock.h"
#include "deploy/base/process.h"

namespace leeway {

// The exit codes that leeway-server and leeway-worker promise.
inline constexpr int kExitDone = 0;
// Of a server: the job failed, or the coordinator is gone. Of a worker: a restart may help.
inline constexpr int kExitFailed = 1;
// Wrong arguments or job file.
inline constexpr int kExitUsage = 2;
// A restart would not help: bad data, training diverged.
inline constexpr int kExitPermanent = 3;

class RestartPolicy {
 public:
  struct Options {
    // How often one process of each kind is restarted.
    uint32_t server = 0;
    uint32_t worker = 0;
    // The job goes on without workers that are restarted no more.
    bool without_worker = false;
  };
  RestartPolicy(uint32_t servers, uint32_t workers, Options options);

  enum class Action {
    // It has done its part.
    kDone,
    // Start the same rank again after `delay`.
    kRestart,
    // The others go on without it, for `reason`.
    kLeave,
    // The job cannot go on, for `reason`.
    kFail,
  };
  struct Decision {
    Action action = Action::kDone;
    Duration delay{};
    // For a person, naming the process; empty for kDone.
    std::string reason;
  };

  // A crash (a signal, or a code that is not one of the above) is answered with a restart, at once
  // the first time and then after 1, 2, 4 ... seconds, as often as the options say.
  Decision OnWorkerExit(uint32_t rank, const ExitStatus& exit);
  // The same for servers, but kExitFailed is no crash: with it a server says that the job has
  // failed.
  Decision OnServerExit(uint32_t index, const ExitStatus& exit);

  // By rank, and by index.
  const std::vector<uint32_t>& worker_restarts() const { return workers_; }
  const std::vector<uint32_t>& server_restarts() const { return servers_; }

 private:
  Decision OnCrash(const std::string& name, const char* limit_name, uint32_t limit,
                   const ExitStatus& exit, uint32_t& restarts) const;

  const Options options_;
  std::vector<uint32_t> servers_;
  std::vector<uint32_t> workers_;
};

}  // namespace leeway
