#include "common/process/process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/descriptor.h"
#include "common/status.h"

namespace leeway {
namespace {

absl::Status StartingError(const std::string& name, const char* what) {
  return absl::InternalError(absl::StrCat("starting ", name, ": ", what, ": ", strerror(errno)));
}

// Everything that the child needs. It is prepared before the fork, because a program with threads
// may make only async-signal-safe calls between fork and exec.
struct ChildPlan {
  std::vector<char*> argv;
  std::vector<char*> environment;
  int input = -1;
  int output = -1;
  int error = -1;
  int ready = -1;
  // The child writes errno to this descriptor if exec fails. A successful exec closes the
  // descriptor.
  int failure = -1;
  pid_t parent = 0;
};

// Returns whether the variable contains an address of this process only. A user sets such variables
// for a process that is started by hand, and its children have other addresses.
bool IsOwnAddress(std::string_view name) {
  return name == "LEEWAY_ADVERTISE=" || name == "LEEWAY_LISTEN=" || name == "LEEWAY_HEALTH=";
}

// Returns the environment for a child: that of this process, with the variables in `added`
// (NAME=VALUE), which replace variables with the same names. Overrides of a job (LEEWAY__A__B) are
// left out. The child's job already includes them, and applying them again would undo --set, which
// takes precedence.
std::vector<char*> ChildEnvironment(std::vector<std::string>& added) {
  std::vector<char*> kept;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const std::string& each) {
      return each.starts_with(name);
    });
    if (replaced || text.starts_with("LEEWAY__") || IsOwnAddress(name)) continue;
    kept.push_back(*variable);
  }
  for (std::string& each : added) kept.push_back(each.data());
  kept.push_back(nullptr);
  return kept;
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  setpgid(0, 0);
  // If the parent died before this request, the kernel sends no signal, so the child ends itself.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(127);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(plan.input, STDIN_FILENO);
  dup2(plan.output, STDOUT_FILENO);
  dup2(plan.error, STDERR_FILENO);
  if (plan.ready >= 0) fcntl(plan.ready, F_SETFD, 0);
  execve(plan.argv[0], plan.argv.data(), plan.environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(plan.failure, &error, sizeof(error));
  _exit(127);
}

// Opens the file for the child's standard error, and by default for its standard output, too. On
// failure returns a negative number and sets errno.
int OpenOutput(const ProcessSpec& spec) {
  if (spec.output_file.empty()) return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  return open(spec.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK,
              0644);
}

// Runs in the guard, a process in the child's group that kills the group when this program dies,
// even by SIGKILL. The kernel itself would kill only the child. The guard has no open files, and
// all its signals are blocked.
[[noreturn]] void RunGuard(pid_t group, pid_t parent) {
  if (setpgid(0, group) != 0) _exit(1);
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGUSR1);
  prctl(PR_SET_NAME, "leeway-guard");
  prctl(PR_SET_PDEATHSIG, SIGUSR1);
  if (syscall(SYS_close_range, 0, ~0U, 0) != 0) {
    for (int fd = 0; fd < sysconf(_SC_OPEN_MAX); ++fd) close(fd);
  }
  while (getppid() == parent) sigwaitinfo(&end, nullptr);
  kill(-group, SIGKILL);
  _exit(0);
}

// Waits for the child's exec. Returns 0 if the exec succeeded, otherwise its errno.
int ExecError(int fd) {
  int error = 0;
  ssize_t got;
  do {
    got = read(fd, &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(error) ? error : 0;
}

}  // namespace

std::string ProgramFolder() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : program.parent_path().string();
}

std::string ExitStatus::ToString() const {
  if (!words.empty()) return words;
  if (signaled) return absl::StrCat("signal ", code, " (", strsignal(code), ")");
  return absl::StrCat("exit code ", code);
}

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const ProcessSpec& spec) {
  // These duplicates close on exec, so the child keeps only the ones that become its standard
  // streams.
  Descriptor input(spec.input >= 0 ? fcntl(spec.input, F_DUPFD_CLOEXEC, 3)
                                   : open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (*input < 0) return StartingError(spec.name, "opening its standard input");
  Descriptor error_output(OpenOutput(spec));
  if (*error_output < 0) return StartingError(spec.name, spec.output_file.c_str());
  int pipes[4] = {-1, -1, -1, -1};
  if (pipe2(pipes, O_CLOEXEC) != 0) return StartingError(spec.name, "making a pipe");
  Descriptor failure_read(pipes[0]), failure_write(pipes[1]);
  if (spec.announces_ready && pipe2(pipes + 2, O_CLOEXEC) != 0) {
    return StartingError(spec.name, "making a pipe");
  }
  Descriptor ready_read(pipes[2]), ready_write(pipes[3]);

  std::vector<std::string> arguments = spec.arguments;
  if (spec.announces_ready) {
    arguments.insert(arguments.end(), {"--ready-fd", std::to_string(*ready_write)});
  }
  ChildPlan plan;
  std::vector<std::string> added;
  for (const auto& [name, value] : spec.environment) {
    added.push_back(absl::StrCat(name, "=", value));
  }
  plan.environment = ChildEnvironment(added);
  plan.input = *input;
  plan.output = spec.output >= 0 ? spec.output : *error_output;
  plan.error = *error_output;
  plan.ready = *ready_write;
  plan.failure = *failure_write;
  plan.parent = getpid();
  for (std::string& argument : arguments) plan.argv.push_back(argument.data());
  plan.argv.push_back(nullptr);

  const pid_t pid = fork();
  if (pid < 0) return StartingError(spec.name, "fork");
  if (pid == 0) RunChild(plan);
  close(failure_write.Release());
  if (const int error = ExecError(*failure_read); error != 0) {
    waitpid(pid, nullptr, 0);
    errno = error;
    return StartingError(spec.name, spec.arguments[0].c_str());
  }
  return Attend(spec, pid, ready_read.Release());
}

absl::StatusOr<std::unique_ptr<Process>> Process::Attend(const ProcessSpec& spec, pid_t pid,
                                                         int ready_fd) {
  std::unique_ptr<Process> process(new Process(spec.name, pid, ready_fd));
  absl::StatusOr<std::unique_ptr<ExitWatch>> watch = ExitWatch::Begin(pid);
  if (!watch.ok()) return Annotate(watch.status(), absl::StrCat("starting ", spec.name));
  process->exit_watch_ = *std::move(watch);
  if (!spec.starts_others) return process;
  // Block all signals before the fork, so that no signal handler of this program runs in the guard.
  // The guard is in the group that receives the signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = getpid(), guard = fork();
  if (guard == 0) RunGuard(pid, parent);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (guard < 0) return StartingError(spec.name, "fork");
  // The parent and the guard both make this call. The parent must not leave it to the guard,
  // because the group may be gone before the guard runs.
  setpgid(guard, pid);
  process->guard_ = guard;
  return process;
}

Process::Process(std::string name, pid_t pid, int ready_fd)
    : name_(std::move(name)), pid_(pid), ready_fd_(ready_fd) {}

Process::~Process() {
  if (!collected_) EndGroup();
  if (ready_fd_ >= 0) close(ready_fd_);
}

absl::StatusOr<std::string> Process::ReadReady(bool* complete) {
  *complete = false;
  char buffer[512];
  const ssize_t got = read(ready_fd_, buffer, sizeof(buffer));
  if (got < 0 && errno == EINTR) return ready_line_;
  if (got > 0) ready_line_.append(buffer, got);
  const size_t end = ready_line_.find('\n');
  if (got > 0 && end == std::string::npos) return ready_line_;
  close(std::exchange(ready_fd_, -1));
  if (end == std::string::npos) {
    return absl::UnavailableError(absl::StrCat(name_, " ended without reporting its address"));
  }
  *complete = true;
  return ready_line_.substr(0, end);
}

absl::StatusOr<ExitStatus> Process::Collect() {
  siginfo_t info{};
  // Do not collect the child yet, so that no other process gets its pid before the group with this
  // number has been killed.
  if (waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return absl::InternalError(absl::StrCat("waiting for ", name_, ": ", strerror(errno)));
  }
  if (info.si_pid == 0) return absl::UnavailableError(absl::StrCat(name_, " is still running"));
  EndGroup();
  return ExitStatus{.signaled = info.si_code != CLD_EXITED, .code = info.si_status};
}

bool Process::Traced() const {
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) return line != "TracerPid:\t0";
  }
  return false;
}

bool Process::Includes(pid_t pid) const { return pid == pid_ || getpgid(pid) == pid_; }

void Process::Signal(int signal) {
  if (!collected_) kill(-pid_, signal);
}

void Process::EndGroup() {
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  if (guard_ > 0) waitpid(guard_, nullptr, 0);
  collected_ = true;
}

}  // namespace leeway
