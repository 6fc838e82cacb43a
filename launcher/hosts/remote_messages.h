// The messages between `leeway train` and `leeway remote`, its remote end on another host. They are
// lines of JSON on standard input and output, so no secret appears on a command line.
//
//   launcher -> remote   one RemoteRequest, then signals; the end of the input ends the process
//   remote -> launcher   RemoteHello, at once; then what happens to the process
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "common/process/process.h"

namespace leeway {

// The most bytes in a line. A request is shorter: it has some arguments and three certificate
// files.
inline constexpr size_t kRemoteLineMax = 1 << 20;

struct RemoteRequest {
  // The launcher's version. The remote end must have the same version.
  std::string version = {};
  // leeway-server or leeway-worker, in the folder of the remote end's `leeway`. If empty, the
  // remote end starts nothing and answers only with RemoteHello.
  std::string program = {};
  // The program that runs instead of leeway-worker: a name or path, and its arguments, run in
  // `folder`. If empty, leeway-worker runs.
  std::vector<std::string> command = {};
  // The process's name in messages.
  std::string name = {};
  std::vector<std::string> arguments = {};
  Environment environment = {};
  // The contents of the key files, by name. The remote end writes them to a folder and sets
  // LEEWAY_TLS_DIR to it. If empty, there is no such folder.
  Environment keys = {};
  // The process's current folder, if it exists on the host. With `command` it must exist.
  std::string folder = {};
  // A file that must exist on the host with `shared_content`. The check shows that both ends see
  // the same folder. If empty, nothing is checked.
  std::string shared_file = {};
  std::string shared_content = {};
  // The launcher's file mode creation mask (umask), which the process gets, too.
  int file_mask = 022;
  bool announces_ready = false;
};

// What the remote end reports about itself.
struct RemoteHello {
  std::string version = {};
  // The address at which ssh reached the host. Empty if it is not known.
  std::string address = {};
  // Which of leeway-server and leeway-worker cannot be started on the host.
  std::vector<std::string> missing_programs = {};
};

struct RemoteNews {
  std::optional<RemoteHello> hello = {};
  std::optional<pid_t> pid = {};
  std::optional<std::string> ready = {};
  std::optional<ExitStatus> exit = {};
};

// Return a line with its line end.
std::string RequestLine(const RemoteRequest& request);
std::string SignalLine(int signal);
std::string NewsLine(const RemoteNews& news);

// Parse a line without its line end. Return INVALID_ARGUMENT if the line is malformed.
absl::StatusOr<RemoteRequest> ParseRequest(const std::string& line);
absl::StatusOr<int> ParseSignal(const std::string& line);
// Returns no value if another program wrote the line, such as a login shell with a greeting.
absl::StatusOr<std::optional<RemoteNews>> ParseNews(const std::string& line);

// Cuts a stream into lines.
class LineBuffer {
 public:
  void Append(const char* data, size_t bytes) { text_.append(data, bytes); }
  // Returns the next whole line without its line end, if there is one.
  std::optional<std::string> Next();
  // Returns true if the buffer has more bytes than a line may have, without a line end.
  bool overflows() const { return text_.size() > kRemoteLineMax; }

 private:
  std::string text_;
};

}  // namespace leeway
