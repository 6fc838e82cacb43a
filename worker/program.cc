#include "worker/program.h"

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "common/command_line/command_line.h"
#include "common/command_line/environment_place.h"
#include "common/command_line/security_flags.h"
#include "common/exit_code.h"
#include "common/identity.h"
#include "common/log.h"
#include "common/loopback.h"
#include "common/memory.h"
#include "common/process/this_process.h"
#include "common/protocol.h"
#include "common/room.h"
#include "common/rpc/channel.h"
#include "common/rpc/health_port.h"
#include "common/rpc/host.h"
#include "common/rpc/library_log.h"
#include "common/rpc/transport_security.h"
#include "common/status.h"
#include "peer/peer.h"
#include "worker/worker.h"

namespace leeway {
namespace {

// Handles SIGTERM. The signal goes to a single worker (an evicted pod, a machine that shuts down),
// so it does not stop the job. To stop the job, a person asks the coordinator. The worker exits at
// once, as if it were killed, and its next life repeats the lost work. Without a handler the kernel
// would ignore the signal in a container, where the process may have the id 1.
void OnTerminate(int) { _exit(kExitTerminated); }

struct Flags {
  WorkerOptions worker;
  std::string health;
  double start_seconds = 120;
  PeerListening listening;
  SecurityFlags security;
  LogOptions log;
};

// Declares where the worker listens if workers hold the blocks.
void DeclareListening(CLI::App& app, PeerListening& listening) {
  app.add_option("--listen", listening.listen,
                 "Address to listen on, HOST:PORT, if workers hold blocks; port 0 means any free "
                 "port; or LEEWAY_LISTEN. Default: a free port of 127.0.0.1 if server 0 is on this "
                 "machine, otherwise of all addresses")
      ->check(AddressToBind());
  app.add_option("--advertise", listening.advertise,
                 "Address at which the other workers reach this one, if it differs from --listen; "
                 "or LEEWAY_ADVERTISE")
      ->check(AddressToBind());
  app.add_flag(
         "--insecure", listening.insecure,
         "Listen on an address that other machines reach, without asking for certificates; or "
         "LEEWAY_INSECURE")
      ->group("Security");
}

void Declare(CLI::App& app, Flags& flags) {
  flags.worker.data_dir = "data";
  flags.worker.host = HostName();
  app.add_option("--coordinator", flags.worker.coordinator,
                 "Address of server 0, HOST:PORT; or LEEWAY_COORDINATOR")
      ->check(AddressToReach());
  app.add_option(
      "--rank", flags.worker.rank,
      "Rank among the workers, from 0. Default: LEEWAY_RANK, the rank that an orchestrator "
      "sets (docs/operations.md), or a free rank");
  app.add_option(
         "--data", flags.worker.data_dir,
         "Folder that contains the job's files, or s3://BUCKET/PREFIX; LEEWAY_DATA_CACHE is the "
         "folder for copies of files from s3")
      ->capture_default_str()
      ->envname("LEEWAY_DATA");
  app.add_flag("--absolute-paths", flags.worker.absolute_paths,
               "Let the job read files outside of that folder, by absolute paths");
  app.add_option_function<std::string>(
         "--processors",
         [&flags](const std::string& text) {
           const auto processors = ParseProcessors(text);
           if (!processors) throw CLI::ValidationError("--processors", "is not a list like 0-3,8");
           flags.worker.processors = *processors;
         },
         "Keep the computing threads on these processors, such as 0-3,8")
      ->type_name("LIST");
  app.add_option("--start-seconds", flags.start_seconds, "How many seconds to look for server 0")
      ->capture_default_str();
  app.add_option("--name", flags.worker.host, "The name of this machine in messages")
      ->capture_default_str();
  app.add_option("--health", flags.health,
                 "Address of a port that answers gRPC health checks, in plain text; default: none")
      ->check(AddressToBind())
      ->envname("LEEWAY_HEALTH");
  DeclareListening(app, flags.listening);
  DeclareSecurity(app, flags.security, EndOfCalls::kCalls);
  app.add_option("--log-file", flags.log.file, "Append the log to a file; default: standard error");
  app.add_flag("--verbose", flags.log.verbose, "Log more");
  app.set_version_flag("--version", std::string("leeway-worker ") + kVersion);
}

int Report(const WorkerEnd& end) {
  switch (end.exit) {
    case WorkerExit::kDone:
      spdlog::info("done");
      return kExitDone;
    case WorkerExit::kStopped:
      spdlog::info("the job was stopped; this worker has ended");
      return kExitStopped;
    case WorkerExit::kReplaced:
      spdlog::info("a newer process has this rank, so this process ends ({})",
                   std::string(end.status.message()));
      return kExitReplaced;
    case WorkerExit::kPermanent:
      spdlog::error("{}", std::string(end.status.message()));
      return kExitPermanent;
    case WorkerExit::kUsage:
      spdlog::error("{}", std::string(end.status.message()));
      return kExitUsage;
    case WorkerExit::kRestart:
      break;
  }
  spdlog::error("{} (a restart may help)", end.status.ToString());
  return kExitTemporary;
}

// Sets options that have no flag on the command line from the environment.
absl::Status CompleteFromEnvironment(WorkerOptions& worker) {
  if (worker.rank && !worker.coordinator.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const EnvironmentPlace place, PlaceFromEnvironment(PlaceRole::kWorker));
  if (!worker.rank) worker.rank = place.rank;
  if (worker.coordinator.empty()) worker.coordinator = place.coordinator;
  if (!worker.coordinator.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--coordinator HOST:PORT, server 0's address, is required");
}

absl::Status AdoptSecurity(const Flags& flags) {
  ASSIGN_OR_RETURN(SecuritySettings security, SettingsOf(flags.security, {}, EndOfCalls::kCalls));
  TakeLibraryLog(/*handshakes=*/false);
  SetProcessSecurity(std::move(security));
  return absl::OkStatus();
}

}  // namespace

int RunWorkerProgram(int argc, char** argv) {
  // The handler is installed first, because a process with the id 1 ignores a signal that arrives
  // earlier.
  std::signal(SIGTERM, OnTerminate);
  TameMalloc();
  NameLimitsOfMemory();
  AllowManyFiles();
  SurviveWrites();
  PrepareGrpc();
  Flags flags;
  CLI::App app("A worker of a Leeway training job.", "leeway-worker");
  Declare(app, flags);
  if (const auto exit_code = ParseCommandLine(app, argc, argv)) return *exit_code;
  absl::Status status = CompleteFromEnvironment(flags.worker);
  const auto& rank = flags.worker.rank;
  flags.log.role = rank.has_value() ? "worker " + std::to_string(*rank) : "worker";
  if (status.ok()) status = SetUpLog(flags.log);
  if (status.ok()) status = AdoptSecurity(flags);
  if (!status.ok()) {
    std::fprintf(stderr, "leeway-worker: %s\n", std::string(status.message()).c_str());
    return kExitUsage;
  }
  // The number of threads and files that a worker needs to take part in a job, besides the
  // computing threads.
  status = CheckRoom({.threads = 10, .files = 16});
  if (status.ok()) status = CheckLoopback(flags.worker.coordinator);
  if (!status.ok()) {
    spdlog::error("{}", std::string(status.message()));
    return kExitTemporary;
  }
  std::unique_ptr<HealthPort> health;
  if (!flags.health.empty()) {
    auto started = HealthPort::Start(flags.health);
    if (!started.ok()) {
      spdlog::error("{}", std::string(started.status().message()));
      return kExitTemporary;
    }
    health = *std::move(started);
  }
  flags.worker.start_within = FromSeconds(flags.start_seconds);
  flags.worker.hold_blocks = [listening = CompletedFromEnvironment(flags.listening)](
                                 const HolderPlace& place) { return StartPeer(listening, place); };
  flags.worker.pid = static_cast<uint32_t>(getpid());
  flags.worker.nonce = RandomIdentity();
  return Report(RunWorker(flags.worker));
}

}  // namespace leeway
