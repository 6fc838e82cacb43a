// What to do when a process of the job ends. Pure: no processes, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/process/process.h"

namespace leeway {

// Every process has a budget of restarts, which fills again with time: only those of the last
// `window` count. A process that dies now and then is restarted for as long as the job lasts; one
// that dies again and again uses its budget up and ends the job.
class RestartPolicy {
 public:
  struct Options {
    // How often one process of each kind is restarted within `window`.
    uint32_t server = 0;
    uint32_t worker = 0;
    Duration window = std::chrono::minutes(10);
    // The job goes on without workers that are restarted no more.
    bool without_worker = false;
  };
  RestartPolicy(uint32_t servers, uint32_t workers, Options options);

  enum class Action {
    // It has done its part.
    kDone,
    // Another process does its part: the others go on with that one, for `reason`.
    kReplaced,
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

  // A crash (a signal, kExitTemporary, or a code that common/exit_code.h does not have) is answered
  // with a restart, at once the first time and then after 1, 2, 4 ... seconds, by how many of the
  // budget are used.
  Decision OnWorkerExit(uint32_t rank, const ExitStatus& exit, Time now);
  Decision OnServerExit(uint32_t index, const ExitStatus& exit, Time now);

  // In all, by rank, and by index.
  std::vector<uint32_t> worker_restarts() const { return Totals(workers_); }
  std::vector<uint32_t> server_restarts() const { return Totals(servers_); }

 private:
  struct Restarts {
    uint32_t total = 0;
    // Within the window; oldest first.
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
