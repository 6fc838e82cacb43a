// A child process, for tests of what happens between processes. Fork before the test has threads.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace leeway {

// Runs `body` in the child and gives its result to the parent. The child then stays until it is
// killed.
class Forked {
 public:
  explicit Forked(const std::function<std::string()>& body) {
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[0]);
      Write(ends[1], body());
      while (true) pause();
    }
    close(ends[1]);
    answer_ = Read(ends[0]);
    close(ends[0]);
  }
  ~Forked() { Kill(); }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& answer() const { return answer_; }

  // When it returns, the process is gone.
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  static void Write(int end, const std::string& text) {
    if (write(end, text.data(), text.size()) < 0) _exit(1);
    close(end);
  }
  static std::string Read(int end) {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(end, buffer, sizeof(buffer))) > 0;) text.append(buffer, got);
    return text;
  }

  pid_t pid_ = -1;
  std::string answer_;
};

}  // namespace leeway
