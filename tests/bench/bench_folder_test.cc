#include <csignal>
#include <filesystem>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/base/bench_job.h"
#include "bench/base/real_servers.h"
#include "tests/catch.h"
#include "tests/launcher/bench_rig.h"

namespace leeway::bench_folder {
namespace {

using testing::Take;

[[noreturn]] void StartServersAndDie(int told, int signal) {
  const auto servers = Take(RealServers::Start(ProgramFolder(), BenchJobYaml({}), 1));
  const std::string folder = servers->folder();
  CHECK(write(told, folder.data(), folder.size()) == static_cast<ssize_t>(folder.size()));
  std::signal(signal, SIG_DFL);
  raise(signal);
  _exit(1);
}

TEST_CASE("Of a benchmark that is killed neither processes nor a folder are left") {
  // The processes that the benchmark leaves behind become children of this one.
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  for (const int signal : {SIGINT, SIGKILL}) {
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    const pid_t director = fork();
    REQUIRE(director >= 0);
    if (director == 0) StartServersAndDie(pipes[1], signal);
    int how = 0;
    REQUIRE(waitpid(director, &how, 0) == director);
    CHECK(WIFSIGNALED(how));
    close(pipes[1]);
    char folder[256] = {};
    REQUIRE(read(pipes[0], folder, sizeof(folder) - 1) > 0);
    close(pipes[0]);
    while (waitpid(-1, nullptr, 0) > 0) {
    }
    CHECK_FALSE(std::filesystem::exists(folder));
  }
}

}  // namespace
}  // namespace leeway::bench_folder
