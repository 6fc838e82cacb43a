#include "bench/base/bench_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/memory.h"
#include "common/rpc/channel.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr int kQuitWithinMs = 5'000;
// The largest size of a line. It is enough, because lines have percentiles and step times, never
// payloads.
constexpr size_t kLineBytesMax = 64 << 20;

bool SendLine(int fd, const Json& message) {
  const std::string line = message.dump() + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t sent = send(fd, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  return true;
}

// Returns the text up to the first line end, and removes it from `received`. Waits until
// `deadline`.
absl::StatusOr<std::string> ReceiveLine(int fd, std::string& received, Time deadline) {
  while (true) {
    if (const size_t end = received.find('\n'); end != std::string::npos) {
      std::string line = received.substr(0, end);
      received.erase(0, end + 1);
      return line;
    }
    if (received.size() > kLineBytesMax) return absl::ResourceExhaustedError("a line is too long");
    const Duration left = deadline - std::chrono::steady_clock::now();
    if (left <= Duration::zero()) return absl::DeadlineExceededError("no answer came in time");
    const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1;
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::min<int64_t>(left_ms, 1 << 30)));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    char buffer[4096];
    const ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::UnavailableError("the process has ended");
    received.append(buffer, static_cast<size_t>(got));
  }
}

Json AnswerOf(const absl::StatusOr<Json>& result) {
  if (result.ok()) return {{"answer", *result}};
  return {{"code", static_cast<int>(result.status().code())},
          {"message", std::string(result.status().message())}};
}

absl::StatusOr<Json> ParseAnswer(const std::string& line) {
  Json answer = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded() || !answer.is_object())
    return absl::InternalError("the answer of the process is not a JSON object");
  if (answer.contains("answer")) return std::move(answer["answer"]);
  return absl::Status(static_cast<absl::StatusCode>(answer.value("code", 13)),
                      answer.value("message", "no message"));
}

// Runs the child's main loop.
void Serve(int fd, const std::function<absl::StatusOr<BenchService>()>& make) {
  auto service = make();
  const bool made = service.ok();
  if (!SendLine(fd, AnswerOf(made ? absl::StatusOr<Json>(service->hello) : service.status()))) {
    return;
  }
  std::string received;
  while (made) {
    const auto line = ReceiveLine(fd, received, Time::max());
    if (!line.ok()) return;
    const Json request = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
    // Exits at once, because gRPC's orderly shutdown would take a second and has no use here.
    if (!request.is_object() || request.contains("quit")) _exit(0);
    if (!SendLine(fd, AnswerOf(service->handle(request)))) return;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchProcess>> BenchProcess::Start(
    std::string name, const std::function<absl::StatusOr<BenchService>()>& make) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::InternalError(absl::StrCat("starting ", name, ": socketpair: ", strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    TameMalloc();
    PrepareGrpc();
    spdlog::set_level(spdlog::level::warn);
    Serve(ends[1], make);
    // Uses _exit, because exit would run the director's cleanup in the child.
    _exit(0);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return absl::InternalError(absl::StrCat("starting ", name, ": fork: ", strerror(errno)));
  }
  std::unique_ptr<BenchProcess> process(new BenchProcess(std::move(name), pid, ends[0]));
  ASSIGN_OR_RETURN(process->hello_, process->Receive());
  return process;
}

BenchProcess::~BenchProcess() {
  SendLine(fd_, {{"quit", true}});
  // Uses the system call itself, because Debian 12's header declares glibc's pidfd_open for C only.
  const int exit_fd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  pollfd wait{.fd = exit_fd, .events = POLLIN, .revents = 0};
  if (exit_fd < 0 || poll(&wait, 1, kQuitWithinMs) != 1) kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  if (exit_fd >= 0) close(exit_fd);
  close(fd_);
}

absl::Status BenchProcess::Send(const Json& request) {
  if (SendLine(fd_, request)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(name_, ": the process has ended"));
}

absl::StatusOr<Json> BenchProcess::Receive(Duration limit) {
  auto line = ReceiveLine(fd_, received_, std::chrono::steady_clock::now() + limit);
  if (!line.ok()) return Annotate(line.status(), name_);
  auto answer = ParseAnswer(*line);
  if (!answer.ok()) return Annotate(answer.status(), name_);
  return answer;
}

absl::StatusOr<Json> BenchProcess::Call(const Json& request, Duration limit) {
  RETURN_IF_ERROR(Send(request));
  return Receive(limit);
}

}  // namespace leeway
