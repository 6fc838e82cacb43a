// What to do when a process of the job ends. Pure: no processes, no clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/clock.h"
#include "deploy/launcher/process.h"

namespace leeway {

// The exit codes that leeway-server and leeway-worker promise.
inline constexpr int kExitDone = 0;
// Wrong arguments or job file.
inline constexpr int kExitUsage = 2;
// A restart would not help: bad data, training diverged.
inline constexpr int kExitPermanent = 3;

class RestartPolicy {
 public:
  RestartPolicy(uint32_t workers, uint32_t max_restarts);

  enum class Action {
    // It has done its part.
    kDone,
    // Start the same rank again after `delay`.
    kRestart,
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
  // the first time and then after 1, 2, 4 ... seconds, as often as `max_restarts` says for each
  // rank.
  Decision OnWorkerExit(uint32_t rank, const ExitStatus& exit);
  // A server holds a part of the model: its crash ends the run.
  Decision OnServerExit(uint32_t index, const ExitStatus& exit) const;

  uint32_t restarts(uint32_t rank) const { return restarts_[rank]; }
  uint32_t total_restarts() const;

 private:
  const uint32_t max_restarts_;
  std::vector<uint32_t> restarts_;
};

}  // namespace leeway
