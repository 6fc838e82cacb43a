// Detects which of the launcher's processes run and do not respond. Pure: no processes, no clock.
//
// A worker or server hangs if its lease has ended, and if the coordinator has then reported it as
// lost for one more lease. The process must have registered itself, so that a process that is still
// loading is not judged by its predecessor's silence. A server also hangs if it had registered and
// does not register again with a restarted coordinator. Server 0 hangs if it has answered once and
// then does not answer for two leases.
//
// Time counts only while the launcher is awake. If the launcher was stopped or the machine
// suspended between two calls, only the usual time between two calls counts. So such a pause does
// not shorten the time that a process has left to respond.
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
    // The most time that counts between two calls of Check or Answered.
    Duration between_calls = std::chrono::seconds(2);
  };
  explicit Watchdog(Options options);

  // Records that a process begins as server 0, which hosts the coordinator.
  void CoordinatorBegins(pid_t pid, Time now);
  void CoordinatorEnds() { coordinator_ = 0; }

  // One process of a server or worker.
  struct Life {
    bool server = false;
    uint32_t number = 0;
    pid_t pid = 0;
    auto operator<=>(const Life&) const = default;
  };
  struct Hung {
    Life life;
    // The reason as text for a person, such as "the coordinator has not heard it for 20 s".
    std::string why;
  };
  // Records an answer of the coordinator. Returns the processes that the coordinator has lost for
  // too long. Some of them may have ended, or run on another machine. If a process continues to
  // hang, it is returned again after another such time.
  std::vector<Hung> Answered(const v1::JobStatus& status, Time now);
  // Returns server 0 if it has been silent for too long. Each process is returned once.
  std::vector<Hung> Check(Time now);

 private:
  void Advance(Time now);
  // Returns the processes that are lost according to the status.
  std::vector<Life> Lost(const v1::JobStatus& status);
  // Returns the time that a process may be silent after its lease is over.
  Duration patience() const;

  const Options options_;
  // The total time for which the launcher was awake.
  Duration awake_{};
  Time last_{};
  bool began_ = false;
  // The process id of server 0; 0 if it does not run or was found to hang.
  pid_t coordinator_ = 0;
  bool answered_ = false;
  // The time of the last answer or of the process's beginning, on the scale of awake_.
  Duration heard_{};
  // When the coordinator first reported each lost process as lost.
  std::map<Life, Duration> lost_;
  // The process id of the newest registered process, by server index.
  std::map<uint32_t, pid_t> servers_;
};

}  // namespace leeway
