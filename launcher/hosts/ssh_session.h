// One connection to `leeway remote` on another host.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/process/process.h"
#include "launcher/hosts/remote_messages.h"
#include "launcher/supervision/event_set.h"

namespace leeway {

// The commands that reach the hosts.
struct SshCommand {
  // The ssh command without host and remote command. The first word is a path.
  std::vector<std::string> words = {};
  // The folder with the programs on each host. If empty, they are found on the host's PATH.
  std::string remote_bin = {};
};

// Splits `text` into words at blanks and finds the program on the PATH. Returns INVALID_ARGUMENT if
// the program is not on the PATH.
absl::StatusOr<SshCommand> MakeSshCommand(const std::string& text, const std::string& remote_bin);

// If the launcher dies, the kernel kills the ssh program, and so the connection closes. Not
// thread-safe.
class SshSession {
 public:
  // `name` is for messages. The standard error of ssh and of the remote end is appended to
  // `log_file`.
  static absl::StatusOr<std::unique_ptr<SshSession>> Open(const SshCommand& ssh,
                                                          const std::string& host,
                                                          const std::string& name,
                                                          const std::string& log_file,
                                                          const std::string& first_line);
  // Closes the connection if it is open.
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  // Returns a file descriptor that is readable when there is something to take.
  int fd() const { return events_.fd(); }
  struct Taken {
    std::vector<RemoteNews> news;
    // The exit status of ssh; absent while ssh runs.
    std::optional<ExitStatus> exit;
  };
  // Returns the lines that have arrived, and the exit status if ssh has ended. Does not wait.
  absl::StatusOr<Taken> Take();

  // Sends `line`, or does nothing if the connection is gone.
  void Send(const std::string& line);
  // Closes the connection, so the remote end kills its process. Kills ssh if it still runs some
  // seconds later.
  void Hangup();

 private:
  SshSession(std::unique_ptr<Process> process, EventSet events, int input, int output, int timer);
  absl::Status ReadOutput(Taken& taken);

  const std::unique_ptr<Process> process_;
  EventSet events_;
  // The launcher's ends of ssh's standard input and output; -1 if closed.
  int input_;
  int output_;
  const int timer_;
  LineBuffer lines_;
};

}  // namespace leeway
