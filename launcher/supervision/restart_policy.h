// Decides what to do when a process of the job ends. Pure: no processes, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/process/process.h"

namespace leeway {

// Every process has a budget of restarts. The budget refills with time, because only restarts
// within the last `window` count. A process that dies occasionally is restarted for as long as the
// job lasts. A process that dies repeatedly uses up its budget and ends the job.
class RestartPolicy {
 public:
  struct Options {
    // How often one server, or one worker, is restarted within `window`.
    uint32_t server = 0;
    uint32_t worker = 0;
    Duration window = std::chrono::minutes(10);
    // Whether the job goes on without a worker whose budget is used up.
    bool without_worker = false;
  };
  RestartPolicy(uint32_t servers, uint32_t workers, Options options);

  enum class Action {
    // The process has completed its work.
    kDone,
    // Another process has taken this process's place in the job, for `reason`. The job goes on with
    // that other process.
    kReplaced,
    // Start the same rank again after `delay`.
    kRestart,
    // The job goes on without the process, for `reason`.
    kLeave,
    // The job cannot go on, for `reason`.
    kFail,
  };
  struct Decision {
    Action action = Action::kDone;
    Duration delay{};
    // The reason as text for a person, which names the process; empty for kDone.
    std::string reason;
  };

  // Decides what to do. A crash is a signal, kExitTemporary, or a code that common/exit_code.h does
  // not define. The first restart after a crash is immediate. Later restarts wait 1, 2, 4 seconds
  // and so on, depending on the number of restarts within the window.
  Decision OnWorkerExit(uint32_t rank, const ExitStatus& exit, Time now);
  Decision OnServerExit(uint32_t index, const ExitStatus& exit, Time now);

  // Return the total number of restarts, by rank for workers and by index for servers.
  std::vector<uint32_t> worker_restarts() const { return Totals(workers_); }
  std::vector<uint32_t> server_restarts() const { return Totals(servers_); }

 private:
  struct Restarts {
    uint32_t total = 0;
    // The times of the restarts within the window, oldest first.
    std::deque<Time> recent;
  };
  static std::vector<uint32_t> Totals(const std::vector<Restarts>& restarts);
  Decision Decide(const std::string& name, const ExitStatus& exit, const char* limit_name,
                  uint32_t limit, Restarts& restarts, Time now) const;
  Decision OnCrash(std::string reason, const char* limit_name, uint32_t limit, Restarts& restarts,
                   Time now) const;

  const Options options_;
  std::vector<Restarts> servers_;
  std::vector<Restarts> workers_;
};

}  // namespace leeway
