#include "server/server_process.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <spdlog/spdlog.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/channel.h"
#include "common/codec/choose.h"
#include "common/files.h"
#include "common/host.h"
#include "common/identity.h"
#include "common/local_sockets.h"
#include "common/status.h"
#include "config/job.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/checkpoint/manifest.h"
#include "server/coordinator/run_folder_sink.h"
#include "server/job_network.h"

namespace leeway {
namespace {

// More than any machine has.
constexpr uint64_t kQuotaBytesMax = uint64_t{1} << 50;

// The run folder says what was run, also without a launcher.
absl::Status KeepJobFile(const std::string& run_dir, const v1::TrainingJob& job) {
  const std::string path = run_dir + "/job.yaml";
  std::error_code error;
  if (std::filesystem::exists(path, error)) return absl::OkStatus();
  return WriteFileAtomically(path, ToYaml(job));
}

absl::StatusOr<std::optional<CoordinatorOptions::Resumed>> NewestCheckpoint(
    const std::string& run_dir) {
  ASSIGN_OR_RETURN(CheckpointSearch search, FindNewestCheckpoint(run_dir));
  for (const std::string& warning : search.warnings) spdlog::warn("{}", warning);
  RETURN_IF_ERROR(CheckNothingLost(run_dir, search));
  if (!search.newest.has_value()) return std::nullopt;
  return CoordinatorOptions::Resumed{std::move(search.newest->manifest),
                                     std::move(search.newest->folder)};
}

absl::StatusOr<CoordinatorOptions::Resumed> FindCheckpoint(const std::string& run_dir,
                                                           const v1::TrainingJob& job) {
  ASSIGN_OR_RETURN(auto newest, NewestCheckpoint(run_dir));
  if (!newest.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("--resume: ", run_dir, "/checkpoints holds no complete checkpoint"));
  }
  RETURN_IF_ERROR(Annotate(CheckGoesOn(newest->manifest, job), "--resume"));
  spdlog::info("goes on from {}", newest->folder);
  return *std::move(newest);
}

// Larger than any incarnation that was given out before, without a file to keep the count in.
uint64_t WallMilliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// gRPC takes a port modulo 2^16.
absl::Status CheckListenAddress(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  uint32_t port = 0;
  const bool good = colon != std::string::npos && colon > 0 &&
                    absl::SimpleAtoi(listen.substr(colon + 1), &port) && port <= 65535;
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--listen ", listen,
                   ": not an address; HOST:PORT with a port of 0 (any) to 65535 is wanted"));
}

absl::Status CheckFresh(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const auto newest, NewestCheckpoint(run_dir));
  if (!newest.has_value()) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("--run-dir ", run_dir, " holds the checkpoint ",
                                               newest->folder, ": --resume goes on from it"));
}

std::string BoundAddress(const std::string& listen, int port) {
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(const ServerOptions& options) {
  std::unique_ptr<ServerProcess> process(new ServerProcess(options));
  if (options.index == 0) RETURN_IF_ERROR(process->StartCoordinator());
  if (!process->ended_) RETURN_IF_ERROR(process->Listen());
  return process;
}

ServerProcess::~ServerProcess() {
  if (server_ == nullptr) return;
  // gRPC's server does not end before its calls have.
  node_.Close();
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  queue_.reset();
}

absl::Status ServerProcess::StartCoordinator() {
  RETURN_IF_ERROR(MakeFolders(options_.run_dir));
  CoordinatorHostOptions options;
  options.core.job = options_.job;
  options.core.job_sha256 = JobSha256(options_.job);
  options.core.run_dir = options_.run_dir;
  RETURN_IF_ERROR(TakeUpRun(options.core));
  if (ended_) return absl::OkStatus();
  RETURN_IF_ERROR(KeepJobFile(options_.run_dir, options_.job));
  PrepareAutoCodec(options.core);
  std::optional<v1::CheckpointManifest> newest;
  if (options.core.resumed) newest = options.core.resumed->manifest;
  sink_ = std::make_unique<RunFolderSink>(options_.run_dir, options.core.job_id,
                                          options_.job.checkpoint().keep(), std::move(newest));
  // The record of a coordinator before this one stays until something is decided.
  if (!options.core.before) {
    v1::CoordinatorRecord record;
    record.set_job_id(options.core.job_id);
    record.set_job_sha256(options.core.job_sha256);
    record.set_generation(options.core.generation);
    if (options.core.auto_codec) *record.mutable_auto_codec() = *options.core.auto_codec;
    RETURN_IF_ERROR(sink_->WriteRecord(record));
  }
  ASSIGN_OR_RETURN(host_, CoordinatorHost::Start(std::move(options), sink_.get()));
  return absl::OkStatus();
}

void ServerProcess::PrepareAutoCodec(CoordinatorOptions& options) const {
  if (!HasAuto(options.job.compression())) return;
  // What was chosen once stays through all lives of the run: other servers and workers go on with
  // it, and what workers keep is for it. Memory is faster than any codec.
  // By where others find it: what listens on loopback may be the end of a tunnel.
  const std::string& found_at = options_.advertise.empty() ? options_.listen : options_.advertise;
  if (!options.auto_codec && OnOneHost(found_at, options.job.transport())) {
    options.auto_codec.emplace().mutable_none();
  }
  if (options.auto_codec) {
    return ResolveAuto(*options.auto_codec, *options.job.mutable_compression());
  }
  options.auto_basis = {MeasureAutoCodecs(), NominalLink("/sys/class/net")};
}

absl::Status ServerProcess::TakeUpRun(CoordinatorOptions& options) {
  ASSIGN_OR_RETURN(const auto record, ReadCoordinatorRecord(options_.run_dir));
  if (record && record->has_auto_codec()) options.auto_codec = record->auto_codec();
  if (record && !options_.resume) return GoOnAfter(*record, options);
  if (!options_.resume) {
    RETURN_IF_ERROR(CheckFresh(options_.run_dir));
  } else {
    ASSIGN_OR_RETURN(options.resumed, FindCheckpoint(options_.run_dir, options_.job));
    options.incarnation_base = WallMilliseconds();
    // Of the lives before, so that no file takes the place of one of theirs, whoever still writes.
    if (record) options.generation = record->generation() + 1;
  }
  options.job_id = RandomIdentity();
  return absl::OkStatus();
}

absl::Status ServerProcess::GoOnAfter(const v1::CoordinatorRecord& record,
                                      CoordinatorOptions& options) {
  if (record.job_sha256() != options.job_sha256) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--run-dir ", options_.run_dir, " holds a run of another job (sha256 ", record.job_sha256(),
        ", this job's is ", options.job_sha256, "): use another folder"));
  }
  if (record.outcome() != v1::JOB_STARTING) {
    ended_ = record;
    return absl::OkStatus();
  }
  options.job_id = record.job_id();
  options.generation = record.generation() + 1;
  options.before = record;
  options.incarnation_base = WallMilliseconds();
  ASSIGN_OR_RETURN(options.resumed, NewestCheckpoint(options_.run_dir));
  spdlog::warn("the server 0 before this one was killed; the job goes on from {}, generation {}",
               options.resumed ? options.resumed->folder : "its beginning", options.generation);
  return absl::OkStatus();
}

absl::Status ServerProcess::Listen() {
  RETURN_IF_ERROR(CheckListenAddress(options_.listen));
  grpc::ServerBuilder builder;
  int port = 0;
  PrepareServer({.address = options_.listen, .quota = &quota_}, builder, &port);
  builder.RegisterService(&node_);
  builder.RegisterService(&node_.parameter_service());
  queue_ = std::make_unique<ServerQueue>(builder);
  const std::string host = HostIdentity();
  local_address_ = host.empty() ? "" : NewLocalAddress();
  if (!local_address_.empty()) AddLocalPort(local_address_, builder);
  if (host_ != nullptr) host_->Register(builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.listen,
                                               ": is the port taken, the address this machine's?"));
  }
  node_.Await(queue_.get());
  if (host_ != nullptr) host_->Await(queue_.get());
  queue_->Start();
  address_ = BoundAddress(options_.listen, port);
  coordinator_ = host_ != nullptr ? address_ : options_.coordinator;
  spdlog::info("listening on {}", address_);
  return absl::OkStatus();
}

absl::Status ServerProcess::Run() {
  if (ended_) {
    spdlog::info("the job of this run folder is over");
    if (ended_->outcome() != v1::JOB_FAILED) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("the job failed: ", ended_->message()));
  }
  const absl::Status joined =
      node_.Join({.index = options_.index,
                  .coordinator = coordinator_,
                  .advertised = options_.advertise.empty() ? address_ : options_.advertise,
                  .local_address = local_address_,
                  .host = HostIdentity(),
                  .nonce = RandomIdentity()},
                 std::chrono::steady_clock::now() + options_.find_coordinator);
  // Stopped before this server had come.
  if (absl::IsAlreadyExists(joined)) return absl::OkStatus();
  RETURN_IF_ERROR(joined);
  // The node has set the job's limits; of the gRPC server that serves it, whose this one is, it
  // knows nothing.
  const uint64_t received = node_.parameter_service().received_bytes_max();
  quota_.Resize(kArrivingBytes + std::min(received, kQuotaBytesMax - kArrivingBytes));
  const ServerNode::Outcome outcome = node_.WaitUntilOver();
  if (outcome == ServerNode::Outcome::kCoordinatorLost) {
    return absl::UnavailableError("the coordinator is gone");
  }
  if (outcome == ServerNode::Outcome::kReplaced) {
    return absl::AbortedError("another process has this server's place");
  }
  if (host_ != nullptr && host_->WaitUntilOver() == v1::JOB_FAILED) {
    return absl::InternalError(absl::StrCat("the job failed: ", host_->Status().message()));
  }
  return absl::OkStatus();
}

}  // namespace leeway
