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

// How hosts are reached.
struct SshCommand {
  // Of ssh, without host and command; the first is a path.
  std::vector<std::string> words = {};
  // On each host, the folder with the programs; empty: those on the PATH there.
  std::string remote_bin = {};
};

// `text` as words, between blanks; the program is looked for on the PATH. INVALID_ARGUMENT if it is
// not there.
absl::StatusOr<SshCommand> MakeSshCommand(const std::string& text, const std::string& remote_bin);

// The ssh program is killed by the kernel if the launcher dies, which closes the connection. Not
// thread-safe.
class SshSession {
 public:
  // `name`, for messages; what ssh and the other end write to their standard error is appended to
  // `log_file`.
  static absl::StatusOr<std::unique_ptr<SshSession>> Open(const SshCommand& ssh,
                                                          const std::string& host,
                                                          const std::string& name,
                                                          const std::string& log_file,
                                                          const std::string& first_line);
  // Closes the connection, if it is open.
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  // Readable when there is something to take.
  int fd() const { return events_.fd(); }
  struct Taken {
    std::vector<RemoteNews> news;
    // ssh has ended.
    std::optional<ExitStatus> exit;
  };
  // Does not wait.
  absl::StatusOr<Taken> Take();

  // Nothing if the connection is gone.
  void Send(const std::string& line);
  // The other end kills its process. If ssh is still there after some seconds, it is killed.
  void Hangup();

 private:
  SshSession(std::unique_ptr<Process> process, EventSet events, int input, int output, int timer);
  absl::Status ReadOutput(Taken& taken);

  const std::unique_ptr<Process> process_;
  EventSet events_;
  // The launcher's ends of ssh's standard input and output; -1: closed.
  int input_;
  int output_;
  const int timer_;
  LineBuffer lines_;
};

}  // namespace leeway
