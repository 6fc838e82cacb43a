#include "server/node/server_process.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/codec/choose.h"
#include "common/exit_code.h"
#include "common/files/private_files.h"
#include "common/identity.h"
#include "common/machine.h"
#include "common/object_store/address.h"
#include "common/retry_hint.h"
#include "common/rpc/channel.h"
#include "common/rpc/handed_connections.h"
#include "common/rpc/host.h"
#include "common/rpc/local_sockets.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "config/job.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "run/outcome.h"
#include "run/run_folder.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/coordinator/run_folder_sink.h"
#include "server/node/ended_job.h"
#include "server/node/job_network.h"
#include "server/node/listening.h"
#include "server/node/run_lock.h"
#include "server/node/run_start.h"

namespace leeway {
namespace {

// The maximum memory quota in bytes, which is more than any machine has.
constexpr uint64_t kQuotaBytesMax = uint64_t{1} << 50;
// Returns the quota for arriving and held bytes. In a small container it is half of the memory, so
// that the operating system does not kill the process. Above the quota gRPC ends streams, and long
// before that gRPC reduces the windows of connections.
size_t QuotaOf(uint64_t bytes) { return std::min(bytes, MachineMemoryBytes() / 2); }

// The time limit for asking another server which job it serves.
constexpr std::chrono::seconds kAskAtMost(1);
// The time limit for asking how the job ended, once a server has learned that the job is over.
constexpr std::chrono::seconds kHowAtMost(3);
// How long server 0 stays if its predecessor was killed between the job's end and its summary. Most
// workers have heard the outcome by then. A worker that still waits to leave asks again within this
// time, even if it has to resolve a name again.
constexpr Duration kLeaversWithin = std::chrono::seconds(30);
// The time limit for asking whether other servers hold this server's shards, and the pause before
// asking again.
constexpr std::chrono::seconds kDrainAttempt(2);
constexpr std::chrono::milliseconds kDrainPause(20);

// Returns the record of a job that is over, for servers 1 and up. Returns nullopt otherwise.
std::optional<v1::CoordinatorRecord> RecordOfEnd(const ServerOptions& options) {
  if (options.record_dir.empty()) return std::nullopt;
  auto record = ReadCoordinatorRecord(options.record_dir);
  if (!record.ok() || !record->has_value()) return std::nullopt;
  if ((*record)->outcome() == v1::JOB_STARTING) return std::nullopt;
  return **std::move(record);
}

AddressOptions AddressOptionsOf(const ServerOptions& options, int port) {
  return {.listen = options.listen,
          .port = port,
          .advertise = options.advertise,
          .coordinator = options.index == 0 ? "" : options.coordinator};
}

// Whether the run folder's job has a server 0 that answers at this server's own listen address.
bool ServesRunOf(const ServerOptions& options) {
  const auto record = ReadCoordinatorRecord(options.run_dir);
  if (!record.ok() || !record->has_value()) return false;
  const auto stub = v1::Coordinator::NewStub(MakeChannel(options.listen));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAskAtMost);
  v1::JobStatus status;
  return stub->GetJobStatus(&context, v1::GetJobStatusRequest(), &status).ok() &&
         status.job_id() == (*record)->job_id();
}

// Whether the run folder has the summary, which is the last file of a run.
bool HasSummary(const std::string& run_dir) {
  const auto storage = StorageOf(run_dir);
  return storage.ok() && (*storage)->SizeOf(absl::StrCat(run_dir, "/", kSummaryFile)).ok();
}

std::string BoundAddress(const std::string& listen, int port) {
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(const ServerOptions& options) {
  RETURN_IF_ERROR(CheckAddresses(AddressOptionsOf(options, 0)));
  std::unique_ptr<ServerProcess> process(new ServerProcess(options));
  // This comes before the run folder is read, because another process may continue the run while
  // this process waits.
  RETURN_IF_ERROR(process->AwaitAddress());
  if (options.index == 0) RETURN_IF_ERROR(process->StartCoordinator());
  if (!process->ended_ || process->ended_job_) RETURN_IF_ERROR(process->Listen());
  return process;
}

ServerProcess::~ServerProcess() {
  if (server_ == nullptr) return;
  port_.reset();
  local_listener_.reset();
  // gRPC's server does not end before its calls have ended.
  node_.Close();
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  queue_.reset();
}

absl::Status ServerProcess::StartCoordinator() {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(options_.run_dir));
  RETURN_IF_ERROR(storage->Prepare(options_.run_dir));
  // The owner of a bucket decides who may read it.
  const bool folder = !IsObjectLocation(options_.run_dir);
  if (folder && options_.job.metadata().private_()) {
    RETURN_IF_ERROR(KeepFolderPrivate(options_.run_dir));
  }
  if (folder) RETURN_IF_ERROR(AwaitRun());
  CoordinatorHostOptions options;
  options.now = options_.now;
  options.core.job = options_.job;
  options.core.job_sha256 = JobSha256(options_.job);
  options.core.run_dir = options_.run_dir;
  options.core.network = NetworkIdentity();
  RETURN_IF_ERROR(TakeUpRun(options.core));
  if (ended_) {
    if (!options_.leaves_outcome) {
      ended_job_ = std::make_unique<EndedJob>(options_.job, *ended_);
    }
    return storage->RemoveUnfinished(options_.run_dir);
  }
  if (options_.job.evaluation().has_early_stop()) {
    options.core.ranks.evaluations = EvaluationsBefore(options_.run_dir);
  }
  RETURN_IF_ERROR(KeepJobFile(options_.run_dir, options_.job));
  PrepareAutoCodec(options.core);
  std::optional<v1::CheckpointManifest> newest;
  if (options.core.resumed) newest = options.core.resumed->manifest;
  sink_ = std::make_unique<RunFolderSink>(options_.run_dir, options.core.job_id,
                                          options_.job.checkpoint().keep(), std::move(newest));
  // The record of an earlier coordinator stays until the job is decided. The files of its servers
  // stay, too, because these servers may still be writing.
  if (!options.core.before) {
    RETURN_IF_ERROR(storage->RemoveUnfinished(options_.run_dir));
    v1::CoordinatorRecord record;
    record.set_job_id(options.core.job_id);
    record.set_job_sha256(options.core.job_sha256);
    record.set_generation(options.core.generation);
    record.set_incarnations(options.core.incarnation_base);
    if (options.core.auto_codec) *record.mutable_auto_codec() = *options.core.auto_codec;
    record.mutable_devices()->Assign(options.core.ranks.devices.begin(),
                                     options.core.ranks.devices.end());
    record.mutable_loss_scales()->Assign(options.core.ranks.loss_scales.begin(),
                                         options.core.ranks.loss_scales.end());
    RETURN_IF_ERROR(sink_->WriteRecord(record));
  }
  ASSIGN_OR_RETURN(host_, CoordinatorHost::Start(std::move(options), sink_.get()));
  return absl::OkStatus();
}

void ServerProcess::PrepareAutoCodec(CoordinatorOptions& options) const {
  if (!HasAuto(options.job.compression())) return;
  // A codec that was chosen once stays for the whole run, because other servers and workers
  // continue with it, and the workers' saved states depend on it. On one host memory is faster than
  // any codec. The address that others use decides whether this is one host, because a listener on
  // loopback may be the end of a tunnel.
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
  if (record) {
    options.ranks.devices.assign(record->devices().begin(), record->devices().end());
    options.ranks.loss_scales.assign(record->loss_scales().begin(), record->loss_scales().end());
  }
  const bool resume = options_.resume || (options_.resumes_ended && record && MayGoOn(*record));
  if (record && !resume) return GoOnAfter(*record, options);
  if (!resume) {
    RETURN_IF_ERROR(CheckFresh(options_.run_dir));
  } else {
    ASSIGN_OR_RETURN(options.resumed, FindCheckpoint(options_.run_dir, options_.job));
    options.incarnation_base = IncarnationsBefore(record);
    // Counts on from earlier lives, so that no file replaces one that an earlier life still writes.
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
  options.incarnation_base = IncarnationsBefore(record);
  ASSIGN_OR_RETURN(options.resumed, NewestCheckpoint(options_.run_dir));
  spdlog::warn("the previous server 0 was killed; the job continues from {}, generation {}",
               options.resumed ? options.resumed->folder : "its beginning", options.generation);
  return absl::OkStatus();
}

absl::Status ServerProcess::AwaitAddress() const {
  return TryFor(options_.start_within, options_.pause, [this] {
    const absl::Status status = TryToListen(options_.listen);
    const bool taken = absl::IsUnavailable(status) && options_.index == 0;
    if (!taken || !ServesRunOf(options_)) return status;
    return absl::AbortedError(absl::StrCat("another process is already server 0 of ",
                                           options_.run_dir, ", at ", options_.listen));
  });
}

absl::Status ServerProcess::AwaitRun() {
  return TryFor(options_.start_within, options_.pause, [this]() -> absl::Status {
    ASSIGN_OR_RETURN(Descriptor lock, LockRun(options_.run_dir));
    run_lock_.emplace(std::move(lock));
    return absl::OkStatus();
  });
}

absl::Status ServerProcess::Listen() {
  grpc::ServerBuilder builder;
  ASSIGN_OR_RETURN(port_, TcpPort::Listen(options_.listen));
  const int port = port_->port();
  connection_gate_ = PrepareForConnections(
      {.address = options_.listen, .memory_bytes = QuotaOf(kArrivingBytes), .quota = &quota_},
      builder);
  builder.RegisterService(&node_);
  builder.RegisterService(&node_.parameter_service());
  queue_ = std::make_unique<ServerQueue>(builder, &doorkeeper_);
  const std::string host = HostIdentity();
  local_address_ = host.empty() ? "" : NewLocalAddress();
  if (host_ != nullptr) host_->Register(builder);
  if (ended_job_ != nullptr) builder.RegisterService(ended_job_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot serve ", options_.listen));
  }
  ListenLocally();
  node_.Await(queue_.get());
  if (host_ != nullptr) host_->Await(queue_.get());
  if (ended_job_ != nullptr) ended_job_->Await(queue_.get());
  queue_->Start();
  RETURN_IF_ERROR(port_->Start(connection_gate_.get(), &connections_));
  guard_ = std::make_unique<ConnectionGuard>([] { return std::chrono::steady_clock::now(); },
                                             &connections_);
  address_ = BoundAddress(options_.listen, port);
  RETURN_IF_ERROR(TryFor(options_.start_within, options_.pause, [&] {
    const auto address = AddressForOthers(AddressOptionsOf(options_, port));
    advertised_ = address.value_or("");
    return address.status();
  }));
  coordinator_ = options_.index == 0 ? address_ : options_.coordinator;
  spdlog::info("listening on {}", address_);
  return absl::OkStatus();
}

void ServerProcess::ListenLocally() {
  if (local_address_.empty()) return;
  auto listener = LocalListener::Start(local_address_, geteuid(), [this](int connection) {
    grpc::AddInsecureChannelFromFd(server_.get(), connection);
  });
  if (listener.ok()) {
    local_listener_ = *std::move(listener);
  } else {
    spdlog::warn("workers of this host use TCP: {}", listener.status().ToString());
    local_address_.clear();
  }
}

absl::Status ServerProcess::Join() {
  RETURN_IF_ERROR(node_.Join({.index = options_.index,
                              .coordinator = coordinator_,
                              .advertised = advertised_,
                              .local_address = local_address_,
                              .host = HostIdentity(),
                              .network = NetworkIdentity(),
                              .nonce = RandomIdentity(),
                              .pid = static_cast<uint32_t>(getpid())},
                             std::chrono::steady_clock::now() + options_.start_within));
  // The node has set the job's limits on its services. It does not know the gRPC server, so the
  // limits of the gRPC server are set here.
  const uint64_t received = node_.parameter_service().received_bytes_max();
  connections_.SetMost(
      ConnectionsMost(node_.parameter_service().connections_of_job(), FilesMost()));
  quota_.Resize(QuotaOf(kArrivingBytes + std::min(received, kQuotaBytesMax - kArrivingBytes)));
  return absl::OkStatus();
}

ServerEnd ServerProcess::Run() {
  // When this function returns, another process may continue the run.
  const absl::Cleanup unlock = [this] { run_lock_.reset(); };
  if (ended_) {
    spdlog::info("the job of this run folder is over");
    const bool without_summary = !HasSummary(options_.run_dir);
    const ServerEnd end = EndJob(ended_->outcome(), ended_->message());
    if (ended_job_ == nullptr) return end;
    const Duration stays =
        without_summary ? std::min(kLeaversWithin, options_.start_within) : options_.start_within;
    spdlog::info("this server stays for at most {:.0f} s to tell the workers", Seconds(stays));
    ended_job_->WaitUntilHeard(std::chrono::steady_clock::now() + stays);
    options_.pause(kHowAtMost);
    return end;
  }
  if (const absl::Status joined = Join(); !joined.ok()) return EndOfLate(joined);
  const ServerNode::Outcome outcome = node_.WaitUntilOver();
  if (outcome == ServerNode::Outcome::kCoordinatorLost) {
    return {kExitTemporary, absl::UnavailableError("the coordinator is gone")};
  }
  if (outcome == ServerNode::Outcome::kDrained) return {kExitTerminated, absl::OkStatus()};
  if (outcome == ServerNode::Outcome::kReplaced) {
    return {kExitReplaced, absl::AbortedError("another process has taken this server's place")};
  }
  if (host_ == nullptr) return EndOf(node_.job_outcome(), "the log of server 0 says why");
  return EndJob(host_->WaitUntilOver(), host_->Status().message());
}

ServerEnd ServerProcess::EndOfLate(const absl::Status& joined) {
  if (absl::IsAlreadyExists(joined) && node_.job_outcome() != v1::JOB_STARTING) {
    return EndOf(node_.job_outcome(), std::string(joined.message()));
  }
  const auto record = RecordOfEnd(options_);
  if (!record || !IsRetryable(joined.code())) return EndOf(joined);
  spdlog::info("the job of this run folder is over, and its server 0 has gone");
  return EndOf(record->outcome(), record->message());
}

bool ServerProcess::Drain(Duration within, const std::function<bool(Duration)>& pause) {
  const Time until = std::chrono::steady_clock::now() + within;
  std::string waits_for;
  do {
    const auto reply = node_.AskToDrain(kDrainAttempt);
    if (reply.ok() && reply->released()) {
      waits_for = reply->message();
      break;
    }
    waits_for = reply.ok() ? reply->message() : std::string(reply.status().message());
    if (absl::IsFailedPrecondition(reply.status()) || !pause(kDrainPause)) return false;
  } while (std::chrono::steady_clock::now() < until);
  if (waits_for.empty()) {
    spdlog::info("other servers have taken over the shards of this one");
  } else {
    spdlog::warn("this server leaves before others have taken over its shards: {}", waits_for);
  }
  node_.Leave();
  return true;
}

ServerEnd ServerProcess::EndJob(v1::JobState outcome, const std::string& message) const {
  if (options_.leaves_outcome) return EndOf(outcome, message);
  const bool stopped = outcome == v1::JOB_STOPPED, failed = outcome == v1::JOB_FAILED;
  const auto record = ReadCoordinatorRecord(options_.run_dir);
  // Why the job finished before its full length.
  const bool known = record.ok() && record->has_value();
  const std::string early = known && !stopped && !failed ? (*record)->message() : "";
  const absl::Status written = WriteOutcome({.job = options_.job,
                                             .run_dir = options_.run_dir,
                                             .state = stopped  ? "stopped"
                                                      : failed ? "failed"
                                                               : "finished",
                                             .message = stopped || failed ? message : early});
  if (failed) return EndOfFailed(message, known ? &**record : nullptr);
  if (written.ok()) return EndOf(outcome, message);
  // The exit code is temporary, because the same command tries to write the model again.
  return {kExitTemporary, Annotate(written,
                                   "the job is over, but its model or summary could not be "
                                   "written")};
}

}  // namespace leeway
