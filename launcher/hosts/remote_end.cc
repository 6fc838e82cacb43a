#include "launcher/hosts/remote_end.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/exit_code.h"
#include "common/files/files.h"
#include "common/files/private_files.h"
#include "common/files/temporary_folder.h"
#include "common/process/process.h"
#include "common/process/this_process.h"
#include "common/protocol.h"
#include "common/security/key_folder.h"
#include "common/status.h"
#include "launcher/hosts/remote_messages.h"
#include "launcher/supervision/find_program.h"

namespace leeway {
namespace {

// A network file system may show a new file some seconds late.
constexpr Duration kShownWithin = std::chrono::seconds(5);
constexpr Duration kLookEvery = std::chrono::milliseconds(100);
constexpr uint64_t kSharedBytesMax = 64 << 10;

void Tell(int output, const RemoteNews& news) {
  const std::string line = NewsLine(news);
  // Ignore an error: if the launcher no longer reads the output, the input ends, too.
  [[maybe_unused]] const ssize_t written = write(output, line.data(), line.size());
}

// Returns the address of this host in the connection. sshd sets SSH_CONNECTION to four words: the
// client's address and port, then this host's address and port.
std::string AddressHere() {
  const char* connection = std::getenv("SSH_CONNECTION");
  const std::vector<std::string> words =
      absl::StrSplit(connection == nullptr ? "" : connection, ' ');
  return words.size() == 4 ? words[2] : "";
}

RemoteHello Hello() {
  RemoteHello hello{.version = kVersion, .address = AddressHere(), .missing_programs = {}};
  for (const char* program : {"leeway-server", "leeway-worker"}) {
    const std::string path = absl::StrCat(ProgramFolder(), "/", program);
    if (access(path.c_str(), X_OK) != 0) hello.missing_programs.push_back(path);
  }
  return hello;
}

// The launcher's lines, in the order of arrival.
class Commands {
 public:
  explicit Commands(int fd) : fd_(fd) {}

  // Waits for input and reads what is available. Returns false if the launcher is gone.
  bool Read() {
    char bytes[4096];
    const ssize_t got = read(fd_, bytes, sizeof(bytes));
    if (got < 0) return errno == EINTR;
    lines_.Append(bytes, got);
    return got > 0 && !lines_.overflows();
  }
  std::optional<std::string> Next() { return lines_.Next(); }
  int fd() const { return fd_; }

 private:
  const int fd_;
  LineBuffer lines_;
};

absl::Status CheckShared(const RemoteRequest& request) {
  const Time until = std::chrono::steady_clock::now() + kShownWithin;
  while (!request.shared_file.empty()) {
    const absl::StatusOr<std::string> content = ReadFile(request.shared_file, kSharedBytesMax);
    if (content.ok() && *content == request.shared_content) break;
    if (std::chrono::steady_clock::now() > until) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the launcher's file ", request.shared_file,
          content.ok() ? " has other contents on this host" : " is missing on this host",
          ": all hosts with servers, or with workers that hold blocks, must see the run folder at "
          "this path (a shared file system; --run-dir DIR names the folder)"));
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  return absl::OkStatus();
}

// Returns the path of the program, and its arguments: those of the request's command, if there is
// one, and then those of the request.
absl::StatusOr<std::vector<std::string>> Arguments(const RemoteRequest& request, bool in_folder) {
  if (request.command.empty()) {
    return std::vector<std::string>{absl::StrCat(ProgramFolder(), "/", request.program)};
  }
  if (!in_folder) {
    return absl::NotFoundError(
        absl::StrCat("the folder ", request.folder,
                     ", in which the program must run, does not exist on this host: start `leeway "
                     "train` in a folder that all hosts have"));
  }
  return FindCommand(request.command);
}

struct Started {
  // Null without keys. It must outlive the process.
  std::unique_ptr<TemporaryFolder> keys;
  std::unique_ptr<Process> process;
};

absl::StatusOr<Started> Start(const RemoteRequest& request) {
  if (request.version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("this is Leeway ", kVersion, ", but the launcher is Leeway ", request.version,
                     ": install the same version"));
  }
  if (request.program != "leeway-server" && request.program != "leeway-worker") {
    return absl::InvalidArgumentError("the launcher asked for a program that is not Leeway's");
  }
  RETURN_IF_ERROR(CheckShared(request));
  umask(static_cast<mode_t>(request.file_mask));
  // All paths that the process gets are absolute. It still runs in this folder, because a job's
  // plugin may look for its own files there.
  const bool in_folder = chdir(request.folder.c_str()) == 0;
  Started started;
  ProcessSpec spec{.name = request.name,
                   .environment = request.environment,
                   .announces_ready = request.announces_ready,
                   .starts_others = !request.command.empty()};
  ASSIGN_OR_RETURN(spec.arguments, Arguments(request, in_folder));
  spec.arguments.insert(spec.arguments.end(), request.arguments.begin(), request.arguments.end());
  if (!request.keys.empty()) {
    ASSIGN_OR_RETURN(started.keys, TemporaryFolder::Make("leeway-keys", TemporaryIn::kMemory));
    const std::string warning = WarningOfKeys(*started.keys);
    if (!warning.empty()) std::fprintf(stderr, "leeway remote: %s\n", warning.c_str());
    for (const auto& [name, content] : request.keys) {
      // A key is named by a file name, not by a path.
      if (name.find('/') != std::string::npos)
        return absl::InvalidArgumentError("the name of a key must be a file name, not a path");
      RETURN_IF_ERROR(WritePrivateFile(absl::StrCat(started.keys->path(), "/", name), content));
    }
    spec.environment.emplace_back("LEEWAY_TLS_DIR", started.keys->path());
  }
  ASSIGN_OR_RETURN(started.process, Process::Start(spec));
  return started;
}

// Passes on signals and waits until the process has ended.
absl::StatusOr<ExitStatus> Attend(Process& process, Commands& commands, int output) {
  int input = commands.fd();
  while (true) {
    while (const std::optional<std::string> line = commands.Next()) {
      if (const absl::StatusOr<int> signal = ParseSignal(*line); signal.ok()) {
        process.Signal(*signal);
      }
    }
    pollfd fds[] = {
        {input, POLLIN, 0}, {process.exit_fd(), POLLIN, 0}, {process.ready_fd(), POLLIN, 0}};
    if (poll(fds, 3, -1) < 0 && errno != EINTR) return absl::InternalError("poll");
    if (fds[2].revents != 0) {
      bool complete = false;
      const absl::StatusOr<std::string> line = process.ReadReady(&complete);
      if (line.ok() && complete) Tell(output, {.ready = *line});
    }
    if (fds[1].revents != 0) {
      const absl::StatusOr<ExitStatus> exit = process.Collect();
      if (!absl::IsUnavailable(exit.status())) return exit;
    }
    if (fds[0].revents != 0 && !commands.Read()) {
      process.Signal(SIGKILL);
      input = -1;
    }
  }
}

}  // namespace

int RunRemoteEnd(int input, int output) {
  SurviveWrites();
  Tell(output, {.hello = Hello()});
  Commands commands(input);
  std::optional<std::string> line;
  while (!(line = commands.Next()).has_value()) {
    if (!commands.Read()) return kExitTemporary;
  }
  const absl::StatusOr<RemoteRequest> request = ParseRequest(*line);
  if (request.ok() && request->program.empty()) return kExitDone;
  absl::StatusOr<Started> started = request.ok() ? Start(*request) : request.status();
  if (!started.ok()) {
    std::fprintf(stderr, "leeway remote: %s\n", std::string(started.status().message()).c_str());
    Tell(output, {.exit = ExitStatus{.code = kExitUsage}});
    return kExitUsage;
  }
  Tell(output, {.pid = started->process->pid()});
  const absl::StatusOr<ExitStatus> exit = Attend(*started->process, commands, output);
  if (!exit.ok()) return kExitTemporary;
  Tell(output, {.exit = *exit});
  return exit->signaled ? kExitTemporary : exit->code;
}

}  // namespace leeway
