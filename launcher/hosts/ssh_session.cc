#include "launcher/hosts/ssh_session.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "launcher/supervision/find_program.h"

namespace leeway {
namespace {

// The seconds that a host may take to end its process and the connection.
constexpr time_t kHangupSeconds = 5;

absl::Status SystemError(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", strerror(errno)));
}

// A pipe. The destructor closes the ends that the owner has not taken out.
struct Pipe {
  int ends[2] = {-1, -1};
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  bool Make() { return pipe2(ends, O_CLOEXEC) == 0; }
  int Take(int end) { return std::exchange(ends[end], -1); }
};

// Quotes `text` for the login shell of the other host.
std::string ShellQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string RemoteCommand(const std::string& remote_bin) {
  return absl::StrCat(remote_bin.empty() ? "leeway" : ShellQuoted(remote_bin + "/leeway"),
                      " remote");
}

}  // namespace

absl::StatusOr<SshCommand> MakeSshCommand(const std::string& text, const std::string& remote_bin) {
  SshCommand ssh{.words = absl::StrSplit(text, ' ', absl::SkipEmpty()), .remote_bin = remote_bin};
  if (ssh.words.empty()) return absl::InvalidArgumentError("--ssh: it is empty");
  absl::StatusOr<std::string> program = FindProgram(ssh.words[0]);
  if (!program.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ssh: ", program.status().message(), "; Debian has ssh in openssh-client"));
  }
  ssh.words[0] = *std::move(program);
  return ssh;
}

absl::StatusOr<std::unique_ptr<SshSession>> SshSession::Open(const SshCommand& ssh,
                                                             const std::string& host,
                                                             const std::string& name,
                                                             const std::string& log_file,
                                                             const std::string& first_line) {
  Pipe in, out;
  if (!in.Make() || !out.Make()) return SystemError("pipe");
  ProcessSpec spec{.name = name,
                   .arguments = ssh.words,
                   .output_file = log_file,
                   .input = in.ends[0],
                   .output = out.ends[1]};
  spec.arguments.insert(spec.arguments.end(), {host, RemoteCommand(ssh.remote_bin)});
  ASSIGN_OR_RETURN(std::unique_ptr<Process> process, Process::Start(spec));
  for (const int end : {in.ends[1], out.ends[0]}) fcntl(end, F_SETFL, O_NONBLOCK);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer < 0) return SystemError("timerfd_create");
  ASSIGN_OR_RETURN(EventSet events, EventSet::Make());
  std::unique_ptr<SshSession> session(
      new SshSession(std::move(process), std::move(events), in.Take(1), out.Take(0), timer));
  for (const int fd : {session->process_->exit_fd(), session->output_, timer}) {
    RETURN_IF_ERROR(session->events_.Add(fd));
  }
  session->Send(first_line);
  return session;
}

SshSession::SshSession(std::unique_ptr<Process> process, EventSet events, int input, int output,
                       int timer)
    : process_(std::move(process)),
      events_(std::move(events)),
      input_(input),
      output_(output),
      timer_(timer) {}

SshSession::~SshSession() {
  for (const int fd : {input_, output_, timer_}) {
    if (fd >= 0) close(fd);
  }
}

void SshSession::Send(const std::string& line) {
  if (input_ < 0) return;
  // A pipe holds more bytes than the launcher ever sends, so the write does not block.
  const ssize_t written = write(input_, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) Hangup();
}

void SshSession::Hangup() {
  if (input_ >= 0) close(std::exchange(input_, -1));
  const itimerspec due{.it_interval = {}, .it_value = {kHangupSeconds, 0}};
  timerfd_settime(timer_, 0, &due, nullptr);
}

absl::Status SshSession::ReadOutput(Taken& taken) {
  char bytes[4096];
  while (output_ >= 0) {
    const ssize_t got = read(output_, bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      close(std::exchange(output_, -1));
      break;
    }
    lines_.Append(bytes, got);
    while (const std::optional<std::string> line = lines_.Next()) {
      ASSIGN_OR_RETURN(std::optional<RemoteNews> news, ParseNews(*line));
      if (news.has_value()) taken.news.push_back(*std::move(news));
    }
    if (lines_.overflows()) return absl::InvalidArgumentError("a line is too long");
  }
  return absl::OkStatus();
}

absl::StatusOr<SshSession::Taken> SshSession::Take() {
  Taken taken;
  const std::set<int> readable = events_.Readable();
  if (readable.contains(timer_)) process_->Signal(SIGKILL);
  // Check for the end before the output is read, so that no output from before the end is missed.
  const bool ended = readable.contains(process_->exit_fd());
  // End the session if the other end does not follow Leeway's protocol.
  if (!ReadOutput(taken).ok()) process_->Signal(SIGKILL);
  if (!ended) return taken;
  absl::StatusOr<ExitStatus> exit = process_->Collect();
  if (absl::IsUnavailable(exit.status())) return taken;
  RETURN_IF_ERROR(exit.status());
  taken.exit = *std::move(exit);
  return taken;
}

}  // namespace leeway
