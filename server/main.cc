// leeway-server: one server of a training job; number 0 hosts the coordinator too.
//
// Exit codes: common/exit_code.h.

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/command_line/command_line.h"
#include "common/command_line/security_flags.h"
#include "common/exit_code.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/protocol.h"
#include "common/retry_hint.h"
#include "common/rpc/channel.h"
#include "common/rpc/library_log.h"
#include "common/rpc/patient_call.h"
#include "common/rpc/transport_security.h"
#include "common/status.h"
#include "common/update/rule.h"
#include "config/job.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "server/node/server_process.h"

namespace leeway {
namespace {

// To ask the coordinator for a stop; one attempt is waited for at the end.
constexpr Duration kAskAttempt = std::chrono::seconds(1);
constexpr Duration kAskWithin = std::chrono::seconds(60);

struct Flags {
  ServerOptions server;
  std::string job;
  std::vector<std::string> sets;
  int ready_fd = -1;
  double start_seconds = 120;
  SecurityFlags security;
  bool insecure = false;
  LogOptions log;
};

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("--index", flags.server.index,
                 "Number of this server, from 0; 0 hosts the coordinator")
      ->capture_default_str();
  app.add_option("--listen", flags.server.listen,
                 "Address to bind, HOST:PORT; port 0: any free one")
      ->check(AddressToBind())
      ->capture_default_str();
  app.add_option("--advertise", flags.server.advertise,
                 "Address at which others reach this server, if not the one bound; needed where "
                 "server 0 listens on 0.0.0.0 or [::]")
      ->check(AddressToBind());
  app.add_option("--coordinator", flags.server.coordinator,
                 "Address of server 0 (servers 1 and up)")
      ->check(AddressToReach());
  app.add_option("--job", flags.job, "The job's YAML file (server 0)");
  app.add_option("--set", flags.sets,
                 "Change a value of the job, a.b=c; may be repeated (server 0)");
  app.add_option("--run-dir", flags.server.run_dir,
                 "Folder for metrics and checkpoints (server 0)");
  app.add_flag("--resume", flags.server.resume,
               "Go on from the run folder's newest checkpoint (server 0)");
  app.add_flag("--no-outcome", flags.server.leaves_outcome,
               "Leave model.safetensors and summary.json to who started this (server 0)");
  app.add_option("--ready-fd", flags.ready_fd,
                 "Open file descriptor that gets a line with the address once it is served");
  app.add_option("--start-seconds", flags.start_seconds,
                 "How long to wait for a port that is taken, and to look for the coordinator")
      ->capture_default_str();
  DeclareSecurity(app, flags.security, EndOfCalls::kAnswers);
  app.add_flag("--insecure", flags.insecure,
               "Listen where others reach it without asking for certificates")
      ->envname("LEEWAY_INSECURE")
      ->group("Security");
  app.add_option("--log-file", flags.log.file, "Append log lines there; default: standard error");
  app.add_flag("--verbose", flags.log.verbose, "Log more");
  app.set_version_flag("--version", std::string("leeway-server ") + kVersion);
}

absl::Status CheckFlags(const Flags& flags) {
  if (flags.server.index > 0 && flags.server.coordinator.empty()) {
    return absl::InvalidArgumentError(
        "servers 1 and up need --coordinator HOST:PORT, server 0's address");
  }
  if (flags.server.index > 0 &&
      (!flags.job.empty() || !flags.server.run_dir.empty() || flags.server.resume)) {
    return absl::InvalidArgumentError("--job, --run-dir and --resume are for server 0");
  }
  if (flags.server.index == 0 && (flags.job.empty() || flags.server.run_dir.empty())) {
    return absl::InvalidArgumentError("server 0 needs --job FILE and --run-dir DIR");
  }
  return absl::OkStatus();
}

// Takes SIGTERM, SIGINT and SIGHUP from all threads for as long as it lives, and answers each by
// asking the coordinator for an orderly stop.
class StopOnSignal {
 public:
  StopOnSignal() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  ~StopOnSignal() {
    if (!thread_.joinable()) return;
    ending_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

  // Before Watch. False: one of them has come.
  bool Sleep(Duration pause) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(pause);
    const timespec limit{seconds.count(), std::chrono::nanoseconds(pause - seconds).count()};
    return sigtimedwait(&signals_, nullptr, &limit) < 0;
  }

  void Watch(const std::string& coordinator) {
    thread_ = std::thread([this, coordinator] {
      const auto stub = v1::Coordinator::NewStub(MakeChannel(coordinator));
      int signal = 0;
      while (sigwait(&signals_, &signal) == 0 && !ending_) Ask(*stub, signal);
    });
  }

 private:
  void Ask(v1::Coordinator::Stub& stub, int signal) {
    spdlog::info("signal {}: asking for an orderly stop", strsignal(signal));
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
                                                return stub.StopJob(&context, request, &reply);
                                              });
    if (!status.ok()) spdlog::error("asking for a stop: {}", std::string(status.message()));
  }

  sigset_t signals_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

absl::Status AnnounceReady(int descriptor, const std::string& address) {
  if (descriptor < 0) return absl::OkStatus();
  const std::string line = address + "\n";
  const bool written =
      write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(descriptor);
  return written ? absl::OkStatus()
                 : absl::UnavailableError("--ready-fd: the address could not be written");
}

absl::StatusOr<std::unique_ptr<ServerProcess>> Start(Flags& flags, StopOnSignal& signals) {
  if (flags.server.index == 0) {
    ASSIGN_OR_RETURN(PlacedJob placed,
                     LoadPlacedJob(flags.job, {flags.sets, EnvironmentOverrides()}));
    // A rule may be a plugin's.
    RETURN_IF_ERROR(placed.places.Place(MakeServerRule(placed.job).status()));
    flags.server.job = std::move(placed.job);
  }
  ASSIGN_OR_RETURN(SecuritySettings security,
                   SettingsOf(flags.security, flags.server.job.security(), EndOfCalls::kAnswers));
  RETURN_IF_ERROR(CheckMayListen(flags.server.listen, security.tls, flags.insecure));
  TakeLibraryLog(/*handshakes=*/security.tls != v1::TLS_MODE_NONE);
  SetProcessSecurity(std::move(security));
  flags.server.start_within = FromSeconds(flags.start_seconds);
  flags.server.pause = [&signals](Duration pause) { return signals.Sleep(pause); };
  return ServerProcess::Start(flags.server);
}

// A port that is taken, a disk that is full; what is wrong with the command, the job or the run
// folder stays wrong.
bool MayPass(const absl::Status& status) {
  return IsRetryable(status.code()) || absl::IsResourceExhausted(status);
}

int Run(Flags& flags) {
  StopOnSignal signals;
  auto process = Start(flags, signals);
  absl::Status status = process.status();
  if (status.ok()) status = AnnounceReady(flags.ready_fd, (*process)->address());
  if (!status.ok()) {
    spdlog::error("{}", std::string(status.message()));
    if (absl::IsAborted(status)) return kExitReplaced;
    return MayPass(status) ? kExitTemporary : kExitUsage;
  }
  signals.Watch((*process)->coordinator());
  const ServerEnd end = (*process)->Run();
  if (end.status.ok()) {
    spdlog::info(end.exit_code == kExitStopped ? "stopped in order" : "done");
  } else {
    spdlog::error("{}", std::string(end.status.message()));
  }
  return end.exit_code;
}

// Connections are files; the usual limit is for programs that wait with select(). Once it is
// reached gRPC accepts no connection any more (CVE-2023-4785).
void AllowManyFiles() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

int Main(int argc, char** argv) {
  TameMalloc();
  AllowManyFiles();
  PrepareGrpc();
  Flags flags;
  CLI::App app("A server of a Leeway training job.", "leeway-server");
  Declare(app, flags);
  if (const auto exit_code = ParseCommandLine(app, argc, argv)) return *exit_code;
  flags.log.role = absl::StrCat("server ", flags.server.index);
  absl::Status status = CheckFlags(flags);
  if (status.ok()) status = SetUpLog(flags.log);
  if (!status.ok()) {
    std::fprintf(stderr, "leeway-server: %s\n", std::string(status.message()).c_str());
    return kExitUsage;
  }
  return Run(flags);
}

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) { return leeway::Main(argc, argv); }
