// A process of a job, on this machine or on another. The supervisor treats both in the same way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "common/process/process.h"

namespace leeway {

// One server or worker to start.
struct Launch {
  bool server = false;
  // Whether the process writes parts of checkpoints, and so must see the run folder.
  bool holds_blocks = false;
  // A server's index or a worker's rank.
  uint32_t number = 0;
  // A worker's own program, with its path and arguments, which runs instead of leeway-worker. If
  // empty, leeway-worker runs.
  std::vector<std::string> command = {};
  // The arguments after the program's name.
  std::vector<std::string> arguments = {};
  // Variables that replace inherited ones of the same name.
  Environment environment = {};
  // A file on this machine. The process's standard output and error are appended to it.
  std::string log_file = {};
  // Whether the process announces the address on which it listens.
  bool announces_ready = false;

  const char* program() const { return server ? "leeway-server" : "leeway-worker"; }
  // Returns the name in messages, such as "worker 1".
  std::string name() const { return (server ? "server " : "worker ") + std::to_string(number); }
};

// A started process. The process and all that it has started end when this object is destroyed or
// the launcher dies. Not thread-safe.
class JobProcess {
 public:
  virtual ~JobProcess() = default;

  // Returns the name in messages, such as "worker 1" or "worker 1 on b".
  virtual const std::string& name() const = 0;
  // Returns the process id on the machine where the process runs, which the coordinator knows, too.
  // It is 0 until news reports it.
  virtual pid_t pid() const = 0;

  // Returns a file descriptor that is readable when there is news.
  virtual int fd() const = 0;
  struct News {
    // The address on which the process listens. Present only if the process announces it.
    std::optional<std::string> ready;
    // Present when the process has ended. No news follows.
    std::optional<ExitStatus> exit;
  };
  // Returns the news since the last call. Does not wait.
  virtual absl::StatusOr<News> TakeNews() = 0;

  // Sends the signal. Does nothing if the process has ended.
  virtual void Signal(int signal) = 0;
  // Returns true if a debugger is known to be attached to the process.
  virtual bool Traced() const = 0;
  // Returns true if `pid`, on the machine where the process runs, is this process or is known to
  // have been started by it. For example, a script has started `pid`.
  virtual bool Includes(pid_t pid) const = 0;
};

// Starts the processes of a job on their machines.
class JobHosts {
 public:
  virtual ~JobHosts() = default;

  // Return the address on which a server, or a worker that serves, must listen. The other processes
  // can reach this address, and its port is any free port.
  virtual std::string ServerListens(uint32_t index) const = 0;
  virtual std::string WorkerListens(uint32_t rank) const = 0;
  virtual absl::StatusOr<std::unique_ptr<JobProcess>> Start(const Launch& launch) = 0;
};

}  // namespace leeway
