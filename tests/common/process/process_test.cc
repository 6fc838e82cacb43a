#include "common/process/process.h"

#include <cstdlib>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::process {
namespace {

std::unique_ptr<Process> Start(const TempFolder& folder, std::vector<std::string> arguments,
                               bool ready = false) {
  auto process = Process::Start({.name = "child",
                                 .arguments = std::move(arguments),
                                 .output_file = folder / "log",
                                 .announces_ready = ready});
  INFO(process.status());
  REQUIRE(process.ok());
  return *std::move(process);
}

void AwaitReadable(int fd) {
  pollfd wanted{fd, POLLIN, 0};
  REQUIRE(poll(&wanted, 1, 30000) == 1);
}

ExitStatus AwaitExit(Process& process) {
  AwaitReadable(process.exit_fd());
  const auto exit = process.Collect();
  REQUIRE(exit.ok());
  return *exit;
}

// A shell that starts another program, which keeps the pipe's writing end open as long as it lives.
ProcessSpec Shell(const TempFolder& folder, const std::string& script) {
  return {.name = "child",
          .arguments = {"/bin/sh", "-c", script},
          .output_file = folder / "log",
          .starts_others = true};
}

// Checks that all processes that hold the writing end have ended.
void CheckAllEnd(int reading_end) {
  AwaitReadable(reading_end);
  char byte;
  CHECK(read(reading_end, &byte, 1) == 0);
  close(reading_end);
}

std::string Log(const TempFolder& folder) { return ReadFile(folder / "log", 1 << 20).value(); }

}  // namespace

TEST_CASE("Exit codes are told apart") {
  const TempFolder folder;
  CHECK(AwaitExit(*Start(folder, {"/bin/true"})).ok());
  const ExitStatus failed = AwaitExit(*Start(folder, {"/bin/false"}));
  CHECK_FALSE(failed.signaled);
  CHECK(failed.ToString() == "exit code 1");
}

TEST_CASE("A killed process is told by its signal") {
  const TempFolder folder;
  const auto process = Start(folder, {"/bin/sleep", "1000"});
  CHECK(absl::IsUnavailable(process->Collect().status()));
  process->Signal(SIGKILL);
  CHECK(AwaitExit(*process).ToString() == "signal 9 (Killed)");
  process->Signal(SIGKILL);
}

TEST_CASE("Output and errors go to the log, and standard input is empty") {
  const TempFolder folder;
  CHECK(AwaitExit(*Start(folder, {"/bin/sh", "-c", "cat; echo out; echo err >&2"})).ok());
  CHECK(AwaitExit(*Start(folder, {"/bin/sh", "-c", "echo more"})).ok());
  CHECK(Log(folder) == "out\nerr\nmore\n");
}

TEST_CASE("A child has a process group of its own, so that Ctrl-C is not for it") {
  const TempFolder folder;
  const auto process = Start(folder, {"/bin/sleep", "1000"});
  CHECK(getpgid(process->pid()) == process->pid());
  CHECK(getpgid(process->pid()) != getpgid(0));
}

TEST_CASE("A child inherits neither blocked nor ignored signals") {
  const TempFolder folder;
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &set, &before) == 0);
  const auto process = Start(folder, {"/bin/sleep", "1000"});
  process->Signal(SIGTERM);
  CHECK(AwaitExit(*process).ToString() == "signal 15 (Terminated)");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("A child inherits the environment, but for what changes a job and what is one's own") {
  const TempFolder folder;
  setenv("LEEWAY__STOP__EPOCHS", "3", 1);
  setenv("LEEWAY_DATA", "/data", 1);
  for (const char* own : {"LEEWAY_ADVERTISE", "LEEWAY_LISTEN", "LEEWAY_HEALTH"}) {
    setenv(own, "10.0.0.1:1", 1);
  }
  const auto process = Start(folder, {"/bin/sh", "-c",
                                      "echo epochs $LEEWAY__STOP__EPOCHS, data $LEEWAY_DATA, $PATH"
                                      "$LEEWAY_ADVERTISE$LEEWAY_LISTEN$LEEWAY_HEALTH"});
  for (const char* own : {"LEEWAY_ADVERTISE", "LEEWAY_LISTEN", "LEEWAY_HEALTH"}) unsetenv(own);
  unsetenv("LEEWAY__STOP__EPOCHS");
  unsetenv("LEEWAY_DATA");
  CHECK(AwaitExit(*process).ok());
  CHECK(Log(folder) == "epochs , data /data, " + std::string(std::getenv("PATH")) + "\n");
}

TEST_CASE("The ready line arrives through its descriptor") {
  const TempFolder folder;
  // The shell gets --ready-fd N after its own arguments: $2 is N. It cannot write >&N from 10 on.
  const auto process = Start(
      folder, {"/bin/sh", "-c", "echo 127.0.0.1:4711 >/proc/self/fd/$2; sleep 1000", "sh"}, true);
  AwaitReadable(process->ready_fd());
  bool complete = false;
  const auto line = process->ReadReady(&complete);
  REQUIRE(line.ok());
  CHECK(complete);
  CHECK(*line == "127.0.0.1:4711");
  CHECK(process->ready_fd() == -1);
}

TEST_CASE("A child that ends without its ready line is found out") {
  const TempFolder folder;
  const auto process = Start(folder, {"/bin/sh", "-c", "true", "sh"}, true);
  AwaitReadable(process->ready_fd());
  bool complete = true;
  CHECK(absl::IsUnavailable(process->ReadReady(&complete).status()));
  CHECK_FALSE(complete);
}

TEST_CASE("A program that is not there is an error that names it") {
  const TempFolder folder;
  const auto process = Process::Start(
      {.name = "server 0", .arguments = {"/no/such/program"}, .output_file = folder / "log"});
  REQUIRE_FALSE(process.ok());
  CHECK(process.status().message() ==
        "starting server 0: /no/such/program: No such file or directory");
}

TEST_CASE("What a child has started ends with it, whoever ends first") {
  struct Case {
    const char* script;
    int signal;
  };
  // The destructor ends the processes of the last cases.
  for (const auto& [script, signal] :
       {Case{"sleep 1000 & exit 3", 0}, Case{"sleep 1000; exit 3", SIGTERM},
        Case{"sleep 1000 & wait", SIGKILL}, Case{"sleep 1000; exit 3", -1},
        Case{"sleep 1000 & exit 3", -1}}) {
    CAPTURE(script, signal);
    const TempFolder folder;
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    auto child = Process::Start(Shell(folder, script));
    REQUIRE(child.ok());
    close(pipes[1]);
    if (signal > 0) (*child)->Signal(signal);
    if (signal >= 0) AwaitExit(**child);
    if (signal < 0) child->reset();
    CheckAllEnd(pipes[0]);
  }
}

TEST_CASE("What a child has started dies with the one that started the child") {
  const TempFolder folder;
  int pipes[2], started[2];
  REQUIRE(pipe(pipes) == 0);
  REQUIRE(pipe(started) == 0);
  const pid_t launcher = fork();
  REQUIRE(launcher >= 0);
  if (launcher == 0) {
    auto child = Process::Start(
        Shell(folder, "sleep 1000 & echo >/proc/self/fd/" + std::to_string(started[1]) + "; wait"));
    pollfd wanted{started[0], POLLIN, 0};
    poll(&wanted, 1, 30000);
    kill(getpid(), SIGKILL);
  }
  close(pipes[1]);
  CheckAllEnd(pipes[0]);
}

TEST_CASE("A child dies with the one that started it") {
  const TempFolder folder;
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  const pid_t launcher = fork();
  REQUIRE(launcher >= 0);
  if (launcher == 0) {
    // Its child keeps the pipe's writing end open for as long as it lives.
    auto child = Process::Start(
        {.name = "child", .arguments = {"/bin/sleep", "1000"}, .output_file = folder / "log"});
    kill(getpid(), SIGKILL);
  }
  close(pipes[1]);
  CheckAllEnd(pipes[0]);
}

}  // namespace leeway::process
