#include "server/node/program.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/command_line/command_line.h"
#include "common/command_line/environment_place.h"
#include "common/command_line/security_flags.h"
#include "common/environment.h"
#include "common/exit_code.h"
#include "common/host_name.h"
#include "common/log.h"
#include "common/loopback.h"
#include "common/memory.h"
#include "common/process/this_process.h"
#include "common/protocol.h"
#include "common/retry_hint.h"
#include "common/room.h"
#include "common/rpc/channel.h"
#include "common/rpc/health_port.h"
#include "common/rpc/library_log.h"
#include "common/rpc/transport_security.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "common/update/rule.h"
#include "common/utf8.h"
#include "config/external.h"
#include "config/job.h"
#include "run/run_folder.h"
#include "server/node/server_process.h"
#include "server/node/signals.h"

namespace leeway {
namespace {

// The default of --grace-seconds. It is shorter than the time after which Kubernetes kills a pod
// (terminationGracePeriodSeconds).
constexpr double kGraceSeconds = 25;
// The service name in health checks. It is serving once the server holds its part of the model.
constexpr char kServiceName[] = "leeway.v1.ParameterServer";

constexpr char kResumeHelp[] =
    "For server 0: continue from the newest checkpoint in the run folder. LEEWAY_RESUME=1 does so "
    "only if the run was stopped or has failed, so it may stay set when server 0 is restarted";

struct Flags {
  ServerOptions server;
  std::optional<uint32_t> index;
  std::string listen;
  std::string health;
  double grace_seconds = kGraceSeconds;
  std::string job;
  std::vector<std::string> sets;
  int ready_fd = -1;
  double start_seconds = 120;
  SecurityFlags security;
  bool insecure = false;
  LogOptions log;
};

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("--index", flags.index,
                 "Number of this server, from 0; server 0 hosts the coordinator. Default: "
                 "LEEWAY_RANK, the number that an orchestrator sets (docs/operations.md), or 0");
  app.add_option("--listen", flags.listen,
                 "Address to listen on, HOST:PORT; port 0 means any free port. Default: a free "
                 "port of 127.0.0.1")
      ->check(AddressToBind())
      ->envname("LEEWAY_LISTEN");
  app.add_option("--advertise", flags.server.advertise,
                 "Address at which other processes reach this server, if it differs from --listen; "
                 "or LEEWAY_ADVERTISE. Server 0 needs it if it listens on 0.0.0.0 or [::]")
      ->check(AddressToBind());
  app.add_option("--coordinator", flags.server.coordinator,
                 "For servers 1 and up: address of server 0; or LEEWAY_COORDINATOR")
      ->check(AddressToReach());
  app.add_option("--job", flags.job,
                 "For server 0: the job's YAML file, or s3://BUCKET/KEY; or LEEWAY_JOB");
  app.add_option("--set", flags.sets,
                 "For server 0: change a value of the job, such as a.b=c; may be repeated");
  app.add_option(
      "--run-dir", flags.server.run_dir,
      "For server 0: folder for metrics and checkpoints, or s3://BUCKET/PREFIX; or LEEWAY_RUN_DIR");
  app.add_flag("--resume", flags.server.resume, kResumeHelp);
  app.add_flag("--no-outcome", flags.server.leaves_outcome,
               "For server 0: leave the model and the summary to the process that started it");
  app.add_option("--ready-fd", flags.ready_fd,
                 "An open file descriptor, to which the server writes a line with its address once "
                 "it listens");
  app.add_option("--start-seconds", flags.start_seconds,
                 "Seconds to wait for a port that is taken, and to look for the coordinator")
      ->capture_default_str();
  app.add_option("--health", flags.health,
                 "Address of a port that answers gRPC health checks, in plain text; default: none")
      ->check(AddressToBind())
      ->envname("LEEWAY_HEALTH");
  app.add_option("--grace-seconds", flags.grace_seconds,
                 "Seconds that other servers get after SIGTERM to take over the shards")
      ->check(CLI::NonNegativeNumber)
      ->envname("LEEWAY_GRACE_SECONDS")
      ->capture_default_str();
  DeclareSecurity(app, flags.security, EndOfCalls::kAnswers);
  app.add_flag("--insecure", flags.insecure,
               "Listen on an address that other machines reach, without asking for certificates")
      ->envname("LEEWAY_INSECURE")
      ->group("Security");
  app.add_option("--log-file", flags.log.file, "Append the log to a file; default: standard error");
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

// Sets options without a flag from the environment. All servers of a job may have the same
// environment, so variables for other servers are ignored.
absl::Status CompleteFromEnvironment(Flags& flags) {
  ServerOptions& server = flags.server;
  EnvironmentPlace place{.own_address = LookUpEnvironment("LEEWAY_ADVERTISE").value_or("")};
  const bool placed = flags.index && (*flags.index == 0 || !server.coordinator.empty());
  if (!placed) {
    ASSIGN_OR_RETURN(place, PlaceFromEnvironment(PlaceRole::kServer));
    if (!flags.index) flags.index = place.rank;
  }
  server.index = flags.index.value_or(0);
  const auto complete = [](std::string& value, const std::string& other) {
    if (value.empty()) value = other;
  };
  server.resumes_ended = LookUpEnvironment("LEEWAY_RESUME").value_or("0") != "0";
  if (server.index == 0) {
    complete(flags.job, LookUpEnvironment("LEEWAY_JOB").value_or(""));
    complete(server.run_dir, LookUpEnvironment("LEEWAY_RUN_DIR").value_or(""));
  } else {
    complete(server.coordinator, place.coordinator);
    server.record_dir = LookUpEnvironment("LEEWAY_RUN_DIR").value_or("");
  }
  server.listen = flags.listen.empty() ? LoopbackHost() + ":0" : flags.listen;
  if (!server.advertise.empty() || place.own_address.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(CheckAddressToReach(place.own_address), "this server's address"));
  server.advertise = place.own_address;
  // Other processes connect to this port.
  ASSIGN_OR_RETURN(const HostPort known, SplitAddress(server.advertise));
  if (flags.listen.empty()) server.listen = absl::StrCat("0.0.0.0:", known.port);
  return absl::OkStatus();
}

absl::Status AnnounceReady(int descriptor, const std::string& address) {
  if (descriptor < 0) return absl::OkStatus();
  const std::string line = address + "\n";
  const bool written =
      write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(descriptor);
  return written ? absl::OkStatus()
                 : absl::UnavailableError("--ready-fd: the address could not be written");
}

absl::StatusOr<std::unique_ptr<ServerProcess>> Start(Flags& flags, Signals& signals) {
  if (flags.server.index == 0) {
    ASSIGN_OR_RETURN(flags.server.run_dir, NormalLocation(flags.server.run_dir));
    RETURN_IF_ERROR(CheckPathIsUtf8(flags.server.run_dir));
    ASSIGN_OR_RETURN(PlacedJob placed,
                     LoadStoredJob(flags.job, {flags.sets, EnvironmentOverrides()}));
    // This check knows the rules of plugins. If a worker sets the rule, the rule is checked when
    // the worker registers.
    if (!BringsUpdate(placed.job)) {
      RETURN_IF_ERROR(placed.places.Place(MakeServerRule(placed.job).status()));
    }
    flags.server.job = std::move(placed.job);
  }
  ASSIGN_OR_RETURN(SecuritySettings security,
                   SettingsOf(flags.security, flags.server.job.security(), EndOfCalls::kAnswers));
  const absl::Status open = CheckMayListen(flags.server.listen, security.tls, flags.insecure);
  if (!open.ok()) {
    // The advice about certificates is useful only if the host is known.
    RETURN_IF_ERROR(Annotate(CheckHostIsKnown(flags.server.listen), "--listen"));
    return open;
  }
  RETURN_IF_ERROR(CheckLoopback(flags.server.listen));
  RETURN_IF_ERROR(CheckLoopback(flags.server.coordinator));
  TakeLibraryLog(/*handshakes=*/security.tls != v1::TLS_MODE_NONE);
  SetProcessSecurity(std::move(security));
  flags.server.start_within = FromSeconds(flags.start_seconds);
  flags.server.pause = [&signals](Duration pause) { return signals.Sleep(pause); };
  return ServerProcess::Start(flags.server);
}

// Returns true if an error may be temporary, such as a taken port or a full disk. An error in the
// command, the job or the run folder is permanent.
bool MayPass(const absl::Status& status) {
  return IsRetryable(status.code()) || absl::IsResourceExhausted(status);
}

absl::StatusOr<std::unique_ptr<HealthPort>> StartHealth(const Flags& flags) {
  if (flags.health.empty()) return std::unique_ptr<HealthPort>();
  ASSIGN_OR_RETURN(auto health, HealthPort::Start(flags.health));
  health->Set(kServiceName, false);
  return health;
}

// `signals` must have been made before any other thread of the process.
int Run(Flags& flags, Signals& signals) {
  auto health = StartHealth(flags);
  auto process = health.ok() ? Start(flags, signals) : health.status();
  absl::Status status = process.status();
  if (status.ok()) status = AnnounceReady(flags.ready_fd, (*process)->address());
  if (!status.ok()) {
    spdlog::error("{}", std::string(status.message()));
    if (absl::IsAborted(status)) return kExitReplaced;
    return MayPass(status) ? kExitTemporary : kExitUsage;
  }
  if (*health != nullptr) {
    (*process)->OnReadiness([&](bool ready) { (*health)->Set(kServiceName, ready); });
  }
  signals.Watch(**process, FromSeconds(flags.grace_seconds));
  const ServerEnd end = (*process)->Run();
  signals.Unwatch();
  if (end.status.ok()) {
    spdlog::info(end.exit_code == kExitStopped      ? "the job was stopped; this server has ended"
                 : end.exit_code == kExitTerminated ? "this server has left the job"
                                                    : "done");
  } else {
    spdlog::error("{}", std::string(end.status.message()));
  }
  return end.exit_code;
}

// The threads and files that the server needs before it listens.
constexpr Room kServerRoom = {.threads = 16, .files = 24};

}  // namespace

int RunServer(int argc, char** argv) {
  // Install the handlers first, because in a container process 1 loses a SIGTERM that arrives
  // earlier.
  Signals signals;
  TameMalloc();
  NameLimitsOfMemory();
  AllowManyFiles();
  SurviveWrites();
  PrepareGrpc();
  Flags flags;
  CLI::App app("A server of a Leeway training job.", "leeway-server");
  Declare(app, flags);
  if (const auto exit_code = ParseCommandLine(app, argc, argv)) return *exit_code;
  absl::Status status = CompleteFromEnvironment(flags);
  flags.log.role = absl::StrCat("server ", flags.server.index);
  if (status.ok()) status = CheckFlags(flags);
  if (status.ok()) status = SetUpLog(flags.log);
  if (!status.ok()) {
    std::fprintf(stderr, "leeway-server: %s\n", std::string(status.message()).c_str());
    return kExitUsage;
  }
  if (status = CheckRoom(kServerRoom); !status.ok()) {
    spdlog::error("{}", std::string(status.message()));
    return kExitTemporary;
  }
  return Run(flags, signals);
}

}  // namespace leeway
