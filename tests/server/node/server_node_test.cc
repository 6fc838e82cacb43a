// A server that lives inside another program, which here is the test.
#include <csignal>

#include <sys/stat.h>

#include "tests/server/node/two_servers.h"

namespace leeway::control_messages {
namespace {

// What belongs to the process and not to a server: the mode of new files, and the signals.
std::string StateOfProcess() {
  const mode_t mode = umask(0);
  umask(mode);
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  std::string state = std::to_string(mode);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    // gRPC itself ignores SIGPIPE.
    if (signal == SIGPIPE) continue;
    state += sigismember(&blocked, signal) == 1 ? 'b' : action.sa_handler == SIG_DFL ? 'd' : 'h';
  }
  return state;
}

TEST_CASE("a server inside another program is drained and ends, and the program goes on") {
  SecuritySettings settings;
  settings.token = Token::Parse("0123456789abcdef", "the test").value();
  // The process itself has no token. So every channel of the servers must be their own.
  const TransportSecurity security(settings);
  const std::string before = StateOfProcess();
  Job job({}, security);
  REQUIRE(job.Exchanges());
  const auto stranger = v1::ParameterServer::NewStub(MakeChannel(job.node_address()));
  CHECK(absl::IsUnauthenticated(job.Attach(*stranger, 0, job.lives[0].incarnation()).status()));
  CHECK(job.Drain() == ServerNode::Outcome::kDrained);
  CHECK(job.Exchanges());
  CHECK(StateOfProcess() == before);
}

}  // namespace
}  // namespace leeway::control_messages
