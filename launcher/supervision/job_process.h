// A process of a job, and where it runs: on this machine, or on another. The supervisor knows
// nothing else of the difference.
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
  // Its index, or its rank.
  uint32_t number = 0;
  // A worker's own program, with its path and arguments, in the place of leeway-worker; empty:
  // none.
  std::vector<std::string> command = {};
  // What follows the program's name.
  std::vector<std::string> arguments = {};
  // Variables that it has in the place of others' of the same name.
  Environment environment = {};
  // On this machine; its standard output and error are appended to it.
  std::string log_file = {};
  // It is to say where it listens.
  bool announces_ready = false;

  const char* program() const { return server ? "leeway-server" : "leeway-worker"; }
  // For messages: "worker 1".
  std::string name() const { return (server ? "server " : "worker ") + std::to_string(number); }
};

// One that was started. It ends with this object, and when the launcher dies, and what it has
// started ends with it. Not thread-safe.
class JobProcess {
 public:
  virtual ~JobProcess() = default;

  // For messages: "worker 1", "worker 1 on b".
  virtual const std::string& name() const = 0;
  // On the machine that it runs on, as the coordinator knows it; 0: it is not known yet, and comes
  // with news.
  virtual pid_t pid() const = 0;

  // Readable when there is news.
  virtual int fd() const = 0;
  struct News {
    // The address at which it listens; only if it was to say so.
    std::optional<std::string> ready;
    // It has ended. There is no more news.
    std::optional<ExitStatus> exit;
  };
  // What is new, if anything is; does not wait.
  virtual absl::StatusOr<News> TakeNews() = 0;

  // Nothing if it has ended.
  virtual void Signal(int signal) = 0;
  // A debugger is attached to it, as far as that is known.
  virtual bool Traced() const = 0;
  // Whether `pid`, on the machine that it runs on, is it or is known to be what it has started: a
  // script's program, say.
  virtual bool Includes(pid_t pid) const = 0;
};

// Where the processes of a job run.
class JobHosts {
 public:
  virtual ~JobHosts() = default;

  // What server `index` is given as --listen: any free port, where the others reach it.
  virtual std::string ListenAddress(uint32_t index) const = 0;
  virtual absl::StatusOr<std::unique_ptr<JobProcess>> Start(const Launch& launch) = 0;
};

}  // namespace leeway
