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

// Returns the folder of this program. leeway-server and leeway-worker are in the same folder.
std::string ProgramFolder();

struct ExitStatus {
  // True if signal `code` killed the process. Otherwise `code` is the exit code.
  bool signaled = false;
  int code = 0;
  // A description for people that replaces the code. Empty if the code is enough.
  std::string words = {};

  bool ok() const { return !signaled && code == 0; }
  // Returns `words` if it is not empty, otherwise a string such as "exit code 3" or "signal 9
  // (Killed)".
  std::string ToString() const;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

struct ProcessSpec {
  // The name of the process in messages, such as "worker 1".
  std::string name;
  // The program's path, then its arguments.
  std::vector<std::string> arguments = {};
  // Variables that replace those of this process.
  Environment environment = {};
  // The file to which the child's standard output and error are appended. If empty, they go to this
  // process's standard error.
  std::string output_file = {};
  // The descriptors that become the child's standard input and standard output. If `input` is -1,
  // the child has no input. If `output` is -1, the output goes to output_file.
  int input = -1;
  int output = -1;
  // Adds the option `--ready-fd N`. The child writes a line to that descriptor when it listens.
  bool announces_ready = false;
  // Whether the child may start processes of its own, as a shell does. If so, these processes also
  // end with this program.
  bool starts_others = false;
};

// One child process, with these properties:
// - It has its own process group, so that Ctrl-C reaches only the launcher, which decides what to
//   do.
// - Its signals have their default actions, and it has no standard input unless `input` is set.
// - It has the environment of this process, without overrides of the job (LEEWAY__A__B, which are
//   already in the job) and without addresses that only one process can have (such as
//   LEEWAY_LISTEN).
// - The kernel kills it if the launcher dies.
// Signals go to the child's whole process group. When the child ends, the other processes of the
// group are killed. Not thread-safe. Call Start on a thread that lives as long as the program,
// because the kernel kills the child when that thread ends.
class Process {
 public:
  static absl::StatusOr<std::unique_ptr<Process>> Start(const ProcessSpec& spec);
  // Kills the child and its group if the child still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  // Returns a descriptor, for poll, that becomes readable when the child has ended.
  int exit_fd() const { return exit_watch_->fd(); }
  // Returns a descriptor that becomes readable when the child writes its ready line, or closes the
  // descriptor without a line. Returns -1 if the line was read already or was not requested.
  int ready_fd() const { return ready_fd_; }

  // Call this when ready_fd is readable. Returns the part of the line that has arrived, without the
  // line end. Sets `*complete` to true when the line is whole, and then closes the descriptor.
  // Returns UNAVAILABLE if the child closed the descriptor before the line was whole.
  absl::StatusOr<std::string> ReadReady(bool* complete);
  // Call this when exit_fd is readable. Collects the child, and kills the other processes of its
  // group. Returns UNAVAILABLE while the child still runs.
  absl::StatusOr<ExitStatus> Collect();
  // Returns true if a debugger is attached to the child.
  bool Traced() const;
  // Returns true if `pid` is the child or is in the child's group.
  bool Includes(pid_t pid) const;
  // Sends the signal to the child and its group. Does nothing if the child has been collected.
  void Signal(int signal);

 private:
  Process(std::string name, pid_t pid, int ready_fd);
  // Makes the object for a child that has just started.
  static absl::StatusOr<std::unique_ptr<Process>> Attend(const ProcessSpec& spec, pid_t pid,
                                                         int ready_fd);
  // Kills the processes that an ended child has left in its group.
  void EndGroup();

  const std::string name_;
  const pid_t pid_;
  int ready_fd_;
  std::unique_ptr<ExitWatch> exit_watch_;
  // The pid of the guard, or 0 if the child has no guard.
  pid_t guard_ = 0;
  std::string ready_line_;
  bool collected_ = false;
};

}  // namespace leeway
