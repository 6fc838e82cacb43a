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

// The folder that this program is in, where leeway-server and leeway-worker are too.
std::string ProgramFolder();

// How a process ended.
struct ExitStatus {
  // Died of signal `code`; otherwise `code` is the exit code.
  bool signaled = false;
  int code = 0;
  // Says it better than the code does, for a person; empty: the code says it.
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
  // Variables that it has in the place of this process's.
  Environment environment = {};
  // Standard output and error are appended to it; empty: they are this process's standard error.
  std::string output_file = {};
  // Descriptors that become its standard input, where it is to have one, and its standard output,
  // where that is not for output_file.
  int input = -1;
  int output = -1;
  // Adds `--ready-fd N`: the child writes a line there when it listens.
  bool announces_ready = false;
  // It may start processes of its own, such as a shell does: those end with this program, too.
  bool starts_others = false;
};

// One child: in its own process group (so that Ctrl-C reaches only the launcher, which decides),
// with default signals, no standard input unless it is given one, this environment but for
// overrides of the job (LEEWAY__A__B, which whoever starts it has resolved) and addresses that
// only one process can have (LEEWAY_LISTEN and the like), and killed by the kernel if the launcher
// dies. Signals are for its whole process group, and what is left of the group when the child ends
// is killed. Not thread-safe; Start must be called on a thread that lives as long as the program,
// because the kernel ties the child to it.
class Process {
 public:
  static absl::StatusOr<std::unique_ptr<Process>> Start(const ProcessSpec& spec);
  // Kills the child and its group if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  // Becomes readable when the child has ended; to poll.
  int exit_fd() const { return exit_watch_->fd(); }
  // Becomes readable with the ready line, or at its end if the child ends without one; -1 when read
  // or not asked for.
  int ready_fd() const { return ready_fd_; }

  // To be called when ready_fd is readable: the line so far without its end; `*complete` when it is
  // whole. Closes the descriptor then. UNAVAILABLE if the child closed it before.
  absl::StatusOr<std::string> ReadReady(bool* complete);
  // To be called when exit_fd is readable: collects the child, and kills what is left of its group.
  // UNAVAILABLE while it still runs.
  absl::StatusOr<ExitStatus> Collect();
  // A debugger is attached to it.
  bool Traced() const;
  // Whether `pid` is the child, or of its group.
  bool Includes(pid_t pid) const;
  // Also for its group. Ignored if the child has been collected.
  void Signal(int signal);

 private:
  Process(std::string name, pid_t pid, int ready_fd);
  // Of the child that has just begun.
  static absl::StatusOr<std::unique_ptr<Process>> Attend(const ProcessSpec& spec, pid_t pid,
                                                         int ready_fd);
  // The child has ended: so does all that it has left, and nothing of it stays in the system.
  void EndGroup();

  const std::string name_;
  const pid_t pid_;
  int ready_fd_;
  std::unique_ptr<ExitWatch> exit_watch_;
  // 0: it has none.
  pid_t guard_ = 0;
  std::string ready_line_;
  bool collected_ = false;
};

}  // namespace leeway
