#include "server/node/signals.h"

#include <cstring>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/exit_code.h"
#include "common/rpc/channel.h"
#include "common/rpc/patient_call.h"

namespace leeway {
namespace {

// The time limits of one attempt to ask the coordinator for a stop, and of all attempts. When the
// process ends, it waits for one attempt at most.
constexpr Duration kAskAttempt = std::chrono::seconds(1);
constexpr Duration kAskWithin = std::chrono::seconds(60);
// Signals within this time count as one request, because timeout(1) and other programs signal first
// a process and then its group.
constexpr Duration kSameRequest = std::chrono::seconds(1);

}  // namespace

Signals::Signals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

void Signals::Unwatch() {
  if (!thread_.joinable()) return;
  ending_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

bool Signals::Sleep(Duration pause) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(pause);
  const timespec limit{seconds.count(), std::chrono::nanoseconds(pause - seconds).count()};
  return sigtimedwait(&signals_, nullptr, &limit) < 0;
}

void Signals::Watch(ServerProcess& process, Duration grace) {
  thread_ = std::thread([this, &process, grace] {
    int signal = 0;
    // Check `ending_`, too, because Answer may have consumed the signal that announces the end.
    while (!ending_ && sigwait(&signals_, &signal) == 0 && !ending_) {
      Answer(process, grace, signal);
    }
  });
}

void Signals::Answer(ServerProcess& process, Duration grace, int signal) {
  if (signal != SIGTERM) return AskForStop(process.coordinator(), signal);
  spdlog::info("signal {}: this server leaves the job", strsignal(signal));
  const Time asked = SteadyNow();
  const bool drained = process.Drain(grace, [this, asked](Duration pause) {
    return Sleep(pause) || SteadyNow() - asked < kSameRequest;
  });
  // The process was signalled twice or holds nothing yet, so nobody waits for its shards.
  if (!drained && !ending_) _exit(kExitTerminated);
}

void Signals::AskForStop(const std::string& coordinator, int signal) {
  spdlog::info("signal {}: asking the coordinator to stop the job", strsignal(signal));
  const auto stub = v1::Coordinator::NewStub(MakeChannel(coordinator));
  v1::StopJobRequest request;
  request.set_reason(absl::StrCat("a server got signal ", strsignal(signal)));
  const absl::Status status = CallPatiently({.attempt_max = kAskAttempt,
                                             .total = kAskWithin,
                                             .pause =
                                                 [this](Duration pause) {
                                                   std::this_thread::sleep_for(pause);
                                                   return !ending_.load();
                                                 }},
                                            [&](grpc::ClientContext& context) {
                                              v1::StopJobReply reply;
                                              return stub->StopJob(&context, request, &reply);
                                            });
  if (!status.ok())
    spdlog::error("could not ask the coordinator to stop the job: {}",
                  std::string(status.message()));
}

}  // namespace leeway
