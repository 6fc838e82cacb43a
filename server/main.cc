// leeway-server: one server of a training job; number 0 hosts the coordinator too.
//
// Exit status: 0 the job is over; 1 it failed, or the coordinator is gone; 2 wrong arguments, job file or
// checkpoint.

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/channel.h"
#include "common/files.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/protocol.h"
#include "common/status.h"
#include "config/job.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/coordinator/coordinator_host.h"
#include "server/coordinator/run_folder_sink.h"
#include "server/server_node.h"

namespace leeway {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct Flags {
  uint32_t index = 0;
  std::string listen = "127.0.0.1:0";
  std::string advertise;
  std::string coordinator;
  std::string job;
  std::vector<std::string> sets;
  std::string run_dir;
  bool resume = false;
  int ready_fd = -1;
  double start_seconds = 120;
  LogOptions log;
};

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("--index", flags.index, "Number of this server, from 0; 0 hosts the coordinator")
      ->capture_default_str();
  app.add_option("--listen", flags.listen, "Address to bind, HOST:PORT; port 0: any free one")
      ->capture_default_str();
  app.add_option("--advertise", flags.advertise,
                 "Address at which workers reach this server, if not the one bound");
  app.add_option("--coordinator", flags.coordinator, "Address of server 0 (servers 1 and up)");
  app.add_option("--job", flags.job, "The job's YAML file (server 0)");
  app.add_option("--set", flags.sets, "Change a value of the job, a.b=c; may be repeated (server 0)");
  app.add_option("--run-dir", flags.run_dir, "Folder for metrics and checkpoints (server 0)");
  app.add_flag("--resume", flags.resume, "Go on from the run folder's newest checkpoint (server 0)");
  app.add_option("--ready-fd", flags.ready_fd,
                 "Open file descriptor that gets a line with the address once it is served");
  app.add_option("--start-seconds", flags.start_seconds,
                 "How long to look for the coordinator (servers 1 and up)")
      ->capture_default_str();
  app.add_option("--log-file", flags.log.file, "Append log lines there; default: standard error");
  app.add_flag("--verbose", flags.log.verbose, "Log more");
  app.set_version_flag("--version", std::string("leeway-server ") + kVersion);
}

absl::Status CheckFlags(const Flags& flags) {
  if (flags.index > 0 && flags.coordinator.empty()) {
    return absl::InvalidArgumentError("servers 1 and up need --coordinator HOST:PORT, server 0's address");
  }
  if (flags.index > 0 && (!flags.job.empty() || !flags.run_dir.empty() || flags.resume)) {
    return absl::InvalidArgumentError("--job, --run-dir and --resume are for server 0");
  }
  if (flags.index == 0 && (flags.job.empty() || flags.run_dir.empty())) {
    return absl::InvalidArgumentError("server 0 needs --job FILE and --run-dir DIR");
  }
  return absl::OkStatus();
}

uint64_t RandomId() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

// The coordinator and what it writes through.
struct Coordination {
  std::unique_ptr<CheckpointSink> sink;
  std::unique_ptr<CoordinatorHost> host;
};

absl::StatusOr<std::optional<CoordinatorOptions::Resumed>> FindResumed(const Flags& flags) {
  if (!flags.resume) return std::nullopt;
  ASSIGN_OR_RETURN(CheckpointSearch search, FindNewestCheckpoint(flags.run_dir));
  for (const std::string& warning : search.warnings) spdlog::warn("passed over: {}", warning);
  if (!search.newest.has_value()) {
    return absl::NotFoundError(absl::StrCat("--resume: ", flags.run_dir,
                                            "/checkpoints holds no complete checkpoint"));
  }
  spdlog::info("goes on from {}", search.newest->folder);
  return CoordinatorOptions::Resumed{std::move(search.newest->manifest),
                                     std::move(search.newest->folder)};
}

absl::StatusOr<Coordination> StartCoordinator(const Flags& flags) {
  RETURN_IF_ERROR(MakeFolders(flags.run_dir));
  CoordinatorHostOptions options;
  ASSIGN_OR_RETURN(options.core.job, LoadJob(flags.job, {flags.sets, EnvironmentOverrides()}));
  ASSIGN_OR_RETURN(options.core.resumed, FindResumed(flags));
  options.core.job_id = RandomId();
  options.core.job_sha256 = JobSha256(options.core.job);
  options.core.run_dir = flags.run_dir;
  if (options.core.resumed.has_value()) {
    options.core.incarnation_base = static_cast<uint64_t>(options.wall_seconds() * 1000);
  }
  Coordination coordination;
  coordination.sink = std::make_unique<RunFolderSink>(flags.run_dir, options.core.job_id,
                                                      options.core.job.checkpoint().keep(),
                                                      options.core.resumed);
  ASSIGN_OR_RETURN(coordination.host,
                   CoordinatorHost::Start(std::move(options), coordination.sink.get()));
  return coordination;
}

// Takes SIGTERM and SIGINT from all threads for as long as it lives, and answers each by asking the
// coordinator for an orderly stop.
class StopOnSignal {
 public:
  StopOnSignal() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  ~StopOnSignal() {
    if (!thread_.joinable()) return;
    ending_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

  void Watch(const std::string& coordinator) {
    thread_ = std::thread([this, coordinator] {
      const auto stub = v1::Coordinator::NewStub(MakeChannel(coordinator));
      int signal = 0;
      while (sigwait(&signals_, &signal) == 0 && !ending_) Ask(*stub, signal);
    });
  }

 private:
  static void Ask(v1::Coordinator::Stub& stub, int signal) {
    spdlog::info("signal {}: asking for an orderly stop", strsignal(signal));
    v1::StopJobRequest request;
    request.set_reason(absl::StrCat("a server got signal ", strsignal(signal)));
    v1::StopJobReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    const grpc::Status status = stub.StopJob(&context, request, &reply);
    if (!status.ok()) spdlog::error("asking for a stop: {}", status.error_message());
  }

  sigset_t signals_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

absl::Status AnnounceReady(int descriptor, const std::string& address) {
  if (descriptor < 0) return absl::OkStatus();
  const std::string line = address + "\n";
  const bool written = write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(descriptor);
  return written ? absl::OkStatus()
                 : absl::UnavailableError("--ready-fd: the address could not be written");
}

std::string BoundAddress(const std::string& listen, int port) {
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

// Runs until the job is over. OK: it ended as it should.
absl::Status Serve(const Flags& flags, StopOnSignal& signals, CoordinatorHost* host) {
  ServerNode node;
  grpc::ServerBuilder builder;
  int port = 0;
  PrepareServer({.address = flags.listen}, builder, &port);
  builder.RegisterService(&node);
  builder.RegisterService(&node.parameter_service());
  if (host != nullptr) host->Register(builder);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", flags.listen, ": is the port taken, the address this machine's?"));
  }
  const std::string address = BoundAddress(flags.listen, port);
  const std::string coordinator = host != nullptr ? address : flags.coordinator;
  spdlog::info("listening on {}", address);
  signals.Watch(coordinator);
  RETURN_IF_ERROR(AnnounceReady(flags.ready_fd, address));
  RETURN_IF_ERROR(node.Join({.index = flags.index,
                             .coordinator = coordinator,
                             .advertised = flags.advertise.empty() ? address : flags.advertise},
                            std::chrono::steady_clock::now() + FromSeconds(flags.start_seconds)));
  absl::Status status;
  if (node.WaitUntilOver() == ServerNode::Outcome::kCoordinatorLost) {
    status = absl::UnavailableError("the coordinator is gone");
  } else if (host != nullptr && host->WaitUntilOver() == v1::JOB_FAILED) {
    status = absl::InternalError(absl::StrCat("the job failed: ", host->Status().message()));
  }
  // What still waits is answered CANCELLED.
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  return status;
}

int Run(const Flags& flags) {
  StopOnSignal signals;
  Coordination coordination;
  if (flags.index == 0) {
    auto started = StartCoordinator(flags);
    if (!started.ok()) {
      spdlog::error("{}", std::string(started.status().message()));
      return kUsage;
    }
    coordination = std::move(*started);
  }
  const absl::Status status = Serve(flags, signals, coordination.host.get());
  if (!status.ok()) {
    spdlog::error("{}", std::string(status.message()));
    return kFailed;
  }
  spdlog::info("done");
  return 0;
}

int Main(int argc, char** argv) {
  TameMalloc();
  Flags flags;
  CLI::App app("A server of a Leeway training job.", "leeway-server");
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  flags.log.role = absl::StrCat("server ", flags.index);
  absl::Status status = CheckFlags(flags);
  if (status.ok()) status = SetUpLog(flags.log);
  if (!status.ok()) {
    std::fprintf(stderr, "leeway-server: %s\n", std::string(status.message()).c_str());
    return kUsage;
  }
  return Run(flags);
}

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) { return leeway::Main(argc, argv); }
