#include "launcher/supervision/signals.h"

#include <poll.h>
#include <signal.h>

#include "tests/catch.h"

namespace leeway::signals {
namespace {

// Restores what the tested source changes in this process, which runs other tests afterwards.
class SignalsAsBefore {
 public:
  SignalsAsBefore() {
    pthread_sigmask(SIG_BLOCK, nullptr, &mask_);
    sigaction(SIGHUP, nullptr, &hangup_);
  }
  ~SignalsAsBefore() {
    sigaction(SIGHUP, &hangup_, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_;
  struct sigaction hangup_ {};
};

std::unique_ptr<SignalSource> Create() {
  auto source = SignalSource::Create();
  REQUIRE(source.ok());
  return *std::move(source);
}

}  // namespace

TEST_CASE("Signals are taken one by one, and then there is none") {
  const SignalsAsBefore restored;
  const auto source = Create();
  CHECK(source->Next() == 0);
  raise(SIGHUP);
  pollfd wanted{source->fd(), POLLIN, 0};
  CHECK(poll(&wanted, 1, 30000) == 1);
  CHECK(source->Next() == SIGHUP);
  CHECK(source->Next() == 0);
}

TEST_CASE("Under nohup a hangup does not come") {
  const SignalsAsBefore restored;
  signal(SIGHUP, SIG_IGN);
  const auto source = Create();
  raise(SIGHUP);
  CHECK(source->Next() == 0);
  raise(SIGTERM);
  CHECK(source->Next() == SIGTERM);
}

}  // namespace leeway::signals
