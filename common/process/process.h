// A child process of the launcher.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "common/process/exit_watch.h"

namespace leeway {

// The folder of this program, where leeway-server and leeway-worker are, too.
std::string ProgramFolder();

// How a process ended.
struct ExitStatus {
  // True if signal `code` killed the process. Otherwise `code` is the exit code.
  bool signaled = false;
  int code = 0;
  // A better text for a person than the code. Empty: the code is enough.
  std::string words = {};

  bool ok() const { return !signaled && code == 0; }
  // "exit code 3", "signal 9 (Killed)".
  std::string ToString() const;
};

// Variables and their values.
using Environment = std::vector<std::pair<std::string, std::string>>;

struct ProcessSpec {
  // For messages: "worker 1".
  std::string name;
  // The program's path, then its arguments.
  std::vector<std::string> arguments = {};
  // Variables that replace those of this process.
  Environment environment = {};
  // Standard output and error are appended to this file. Empty: they go to this process's standard
  // error.
  std::string output_file = {};
  // Descriptors that become its standard input and standard output. -1: no input, and output goes
  // to output_file.
  int input = -1;
  int output = -1;
  // Adds `--ready-fd N`: the child writes a line there when it listens.
  bool announces_ready = false;
  // The child may start processes of its own, as a shell does. They end with this program, too.
  bool starts_others = false;
};

// One child process, with these properties:
// - It has its own process group, so that Ctrl-C reaches only the launcher, which decides.
// - It has default signals, and no standard input unless it is given one.
// - It has this environment, without overrides of the job (LEEWAY__A__B, which are already in the
//   job) and without addresses that only one process can have (LEEWAY_LISTEN and the like).
// - The kernel kills it if the launcher dies.
// Signals go to its whole process group. What is left of the group when the child ends is killed.
// Not thread-safe. Call Start on a thread that lives as long as the program, because the kernel
// ties the child to that thread.
class Process {
 public:
  static absl::StatusOr<std::unique_ptr<Process>> Start(const ProcessSpec& spec);
  // Kills the child and its group if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  // Becomes readable when the child has ended. For poll.
  int exit_fd() const { return exit_watch_->fd(); }
  // Becomes readable with the ready line, or at its end if the child ends without one. -1 if the
  // line was read or not asked for.
  int ready_fd() const { return ready_fd_; }

  // Call this when ready_fd is readable. Returns the line so far, without its end. `*complete` is
  // true when the line is whole; the descriptor is closed then. UNAVAILABLE if the child closed it
  // before.
  absl::StatusOr<std::string> ReadReady(bool* complete);
  // Call this when exit_fd is readable. Collects the child, and kills what is left of its group.
  // UNAVAILABLE while the child still runs.
  absl::StatusOr<ExitStatus> Collect();
  // True if a debugger is attached to the child.
  bool Traced() const;
  // True if `pid` is the child, or in its group.
  bool Includes(pid_t pid) const;
  // Sends the signal to the child and its group. Ignored if the child has been collected.
  void Signal(int signal);

 private:
  Process(std::string name, pid_t pid, int ready_fd);
  // Makes the object for a child that has just begun.
  static absl::StatusOr<std::unique_ptr<Process>> Attend(const ProcessSpec& spec, pid_t pid,
                                                         int ready_fd);
  // The child has ended: ends everything that it has left, so that nothing of it stays in the
  // system.
  void EndGroup();

  const std::string name_;
  const pid_t pid_;
  int ready_fd_;
  std::unique_ptr<ExitWatch> exit_watch_;
  // 0: the child has no guard.
  pid_t guard_ = 0;
  std::string ready_line_;
  bool collected_ = false;
};

}  // namespace leeway
