// What `leeway train` and `leeway remote`, its other end on another host, tell each other: lines of
// JSON on the standard input and output that ssh connects. Nothing secret is on a command line.
//
//   launcher -> remote   one RemoteRequest, then signals; the end of the input ends the process
//   remote -> launcher   who it is (RemoteHello), at once; then what becomes of the process
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

// A line is no longer: a request has some arguments and three files of certificates.
inline constexpr size_t kRemoteLineMax = 1 << 20;

struct RemoteRequest {
  // Of the launcher; the other end has the same.
  std::string version = {};
  // leeway-server or leeway-worker, beside the leeway that is the other end. Empty: nothing is
  // started, and the answer is RemoteHello alone.
  std::string program = {};
  // What a worker's place runs instead of leeway-worker: a program's name or path, and its
  // arguments, in `folder`. Empty: none.
  std::vector<std::string> command = {};
  // For messages.
  std::string name = {};
  std::vector<std::string> arguments = {};
  Environment environment = {};
  // Files by name, for a folder that LEEWAY_TLS_DIR then names. Empty: none.
  Environment keys = {};
  // The process's current folder, if it is there; a command's must be.
  std::string folder = {};
  // Is to be there, with this content: what shows that both ends see the same folder. Empty: none.
  std::string shared_file = {};
  std::string shared_content = {};
  // Of the files that it makes: the launcher's.
  int file_mask = 022;
  bool announces_ready = false;
};

// Of the other end.
struct RemoteHello {
  std::string version = {};
  // At which ssh has reached it; empty: not known.
  std::string address = {};
  // Of leeway-server and leeway-worker, those that cannot be started there.
  std::vector<std::string> missing_programs = {};
};

struct RemoteNews {
  std::optional<RemoteHello> hello = {};
  std::optional<pid_t> pid = {};
  std::optional<std::string> ready = {};
  std::optional<ExitStatus> exit = {};
};

// Lines with their end.
std::string RequestLine(const RemoteRequest& request);
std::string SignalLine(int signal);
std::string NewsLine(const RemoteNews& news);

// Of a line without its end. INVALID_ARGUMENT for what is none.
absl::StatusOr<RemoteRequest> ParseRequest(const std::string& line);
absl::StatusOr<int> ParseSignal(const std::string& line);
// Absent: the line is another program's, such as a greeting of the login shell.
absl::StatusOr<std::optional<RemoteNews>> ParseNews(const std::string& line);

// Cuts a stream into lines.
class LineBuffer {
 public:
  void Append(const char* data, size_t bytes) { text_.append(data, bytes); }
  // The next whole line, without its end.
  std::optional<std::string> Next();
  // More than a line may have, without an end.
  bool overflows() const { return text_.size() > kRemoteLineMax; }

 private:
  std::string text_;
};

}  // namespace leeway
