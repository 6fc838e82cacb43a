// Which of the launcher's processes run and do not respond. Pure: no processes, no clock.
//
// A worker or a server hangs if the coordinator has lost it (its lease is over) and says so for as
// long again, the process being the one that had registered: a life that is still loading is not
// measured by the one before it. So does a server that had registered and does not again with a
// coordinator that was started anew. Server 0 hangs if it answered once and then does not for two
// leases.
//
// Time counts while the launcher itself is awake: of a pause between two calls (the launcher was
// stopped, the machine suspended) only as much as lies between two calls usually. When it wakes,
// its processes get the same time to be heard as if nothing had been.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

class Watchdog {
 public:
  struct Options {
    // limits.lease_seconds and limits.start_seconds.
    Duration lease = std::chrono::seconds(10);
    Duration start = std::chrono::seconds(120);
    // Between two calls of Check or Answered, at most, while the launcher is awake.
    Duration between_calls = std::chrono::seconds(2);
  };
  explicit Watchdog(Options options);

  // A life of server 0, which hosts the coordinator, begins.
  void CoordinatorBegins(pid_t pid, Time now);
  void CoordinatorEnds() { coordinator_ = 0; }

  // A life of a server or worker.
  struct Life {
    bool server = false;
    uint32_t number = 0;
    pid_t pid = 0;
    auto operator<=>(const Life&) const = default;
  };
  struct Hung {
    Life life;
    // For a person: "the coordinator has not heard it for 20 s".
    std::string why;
  };
  // The coordinator has answered: the processes that it has lost for too long, each once. Some may
  // be gone, or another machine's.
  std::vector<Hung> Answered(const v1::JobStatus& status, Time now);
  // Server 0, if it is silent for too long; once.
  std::vector<Hung> Check(Time now);

 private:
  void Advance(Time now);
  // Those that the status says are lost.
  std::vector<Life> Lost(const v1::JobStatus& status);
  // Of silence, beyond the lease that is over.
  Duration patience() const;

  const Options options_;
  // While awake.
  Duration awake_{};
  Time last_{};
  bool began_ = false;
  // 0: none runs, or it was found hung.
  pid_t coordinator_ = 0;
  bool answered_ = false;
  // Its last answer, or its beginning.
  Duration heard_{};
  // Since when the coordinator says that it is lost.
  std::map<Life, Duration> lost_;
  // The newest process that has registered, by index.
  std::map<uint32_t, pid_t> servers_;
};

}  // namespace leeway
