#include "server/node/server_process.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/codec/choose.h"
#include "common/exit_code.h"
#include "common/files/private_files.h"
#include "common/identity.h"
#include "common/object_store/address.h"
#include "common/retry_hint.h"
#include "common/rpc/channel.h"
#include "common/rpc/host.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "config/job.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "run/outcome.h"
#include "run/run_folder.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/coordinator/run_folder_sink.h"
#include "server/node/job_network.h"
#include "server/node/listening.h"
#include "server/node/run_lock.h"
#include "server/node/run_start.h"

namespace leeway {
namespace {

// The time limit for asking another server which job it serves.
constexpr std::chrono::seconds kAskAtMost(1);

// Returns the record of a job that is over, for servers 1 and up. Returns nullopt otherwise.
std::optional<v1::CoordinatorRecord> RecordOfEnd(const ServerOptions& options) {
  if (options.record_dir.empty()) return std::nullopt;
  auto record = ReadCoordinatorRecord(options.record_dir);
  if (!record.ok() || !record->has_value()) return std::nullopt;
  if ((*record)->outcome() == v1::JOB_STARTING) return std::nullopt;
  return **std::move(record);
}

// Returns true if the run folder's job has a server 0 that answers at this server's own listen
// address.
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

// How long server 0 stays after all workers have received the outcome. Meanwhile processes that
// were refused can ask how the job ended.
constexpr std::chrono::seconds kStaysForQuestions(3);
// How long server 0 stays if its predecessor was killed between the job's end and its summary. Most
// workers have received the outcome by then. A worker that still waits to leave asks again within
// this time, even if it has to resolve a name again.
constexpr Duration kLeaversWithin = std::chrono::seconds(30);

// Returns true if the run folder has the summary, which is the last file of a run.
bool HasSummary(const std::string& run_dir) {
  const auto storage = StorageOf(run_dir);
  return storage.ok() && (*storage)->SizeOf(absl::StrCat(run_dir, "/", kSummaryFile)).ok();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(const ServerOptions& options) {
  RETURN_IF_ERROR(CheckAddresses({.listen = options.listen,
                                  .advertise = options.advertise,
                                  .coordinator = options.index == 0 ? "" : options.coordinator}));
  std::unique_ptr<ServerProcess> process(new ServerProcess(options));
  // Wait before the run folder is read, because another process may continue the run meanwhile.
  RETURN_IF_ERROR(process->AwaitAddress());
  std::vector<ServerPort::Services> services;
  if (options.index == 0) {
    RETURN_IF_ERROR(process->StartCoordinator());
    if (process->ended_ && process->ended_job_ == nullptr) return process;
    services.push_back(process->CoordinatorServices());
  }
  NodeOptions node = options;
  node.on_job = [](const v1::TrainingJob& job) {
    if (job.metadata().private_()) KeepFilesPrivate();
  };
  ASSIGN_OR_RETURN(process->node_, ServerNode::Start(node, std::move(services)));
  return process;
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

ServerEnd ServerProcess::Run() {
  // Releases the lock when this function returns, so that another process may continue the run.
  const absl::Cleanup unlock = [this] { run_lock_.reset(); };
  if (ended_) return TellEnd();
  if (const absl::Status joined = node_->Join(); !joined.ok()) return EndOfLate(joined);
  switch (node_->WaitUntilOver()) {
    case ServerNode::Outcome::kCoordinatorLost:
      return {kExitTemporary, absl::UnavailableError("the coordinator is gone")};
    case ServerNode::Outcome::kDrained:
      return {kExitTerminated, absl::OkStatus()};
    case ServerNode::Outcome::kReplaced:
      return {kExitReplaced, absl::AbortedError("another process has taken this server's place")};
    case ServerNode::Outcome::kShutDown:
      break;
  }
  if (host_ == nullptr) return EndOf(node_->job_outcome(), "the log of server 0 says why");
  return EndJob(host_->WaitUntilOver(), host_->Status().message());
}

ServerEnd ServerProcess::EndOfLate(const absl::Status& joined) {
  if (absl::IsAlreadyExists(joined) && node_->job_outcome() != v1::JOB_STARTING) {
    return EndOf(node_->job_outcome(), std::string(joined.message()));
  }
  const auto record = RecordOfEnd(options_);
  if (!record || !IsRetryable(joined.code())) return EndOf(joined);
  spdlog::info("the job of this run folder is over, and its server 0 has gone");
  return EndOf(record->outcome(), record->message());
}

absl::Status ServerProcess::StartCoordinator() {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(options_.run_dir));
  RETURN_IF_ERROR(storage->Prepare(options_.run_dir));
  // Only folders are made private here: the owner of a bucket decides who may read the bucket.
  const bool folder = !IsObjectLocation(options_.run_dir);
  if (folder && options_.job.metadata().private_()) {
    RETURN_IF_ERROR(KeepFolderPrivate(options_.run_dir));
  }
  if (folder) RETURN_IF_ERROR(AwaitRun());
  CoordinatorHostOptions options;
  options.now = options_.now;
  if (options_.security != nullptr) options.security = options_.security;
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
  // Keep the record of an earlier coordinator until it is decided which job this is. Keep the files
  // of its servers, too, because these servers may still be writing.
  if (!options.core.before) {
    RETURN_IF_ERROR(storage->RemoveUnfinished(options_.run_dir));
    RETURN_IF_ERROR(WriteFirstRecord(options.core));
  }
  ASSIGN_OR_RETURN(host_, CoordinatorHost::Start(std::move(options), sink_.get()));
  return absl::OkStatus();
}

absl::Status ServerProcess::WriteFirstRecord(const CoordinatorOptions& options) {
  v1::CoordinatorRecord record;
  record.set_job_id(options.job_id);
  record.set_job_sha256(options.job_sha256);
  record.set_generation(options.generation);
  record.set_incarnations(options.incarnation_base);
  if (options.auto_codec) *record.mutable_auto_codec() = *options.auto_codec;
  record.mutable_devices()->Assign(options.ranks.devices.begin(), options.ranks.devices.end());
  record.mutable_loss_scales()->Assign(options.ranks.loss_scales.begin(),
                                       options.ranks.loss_scales.end());
  return sink_->WriteRecord(record);
}

void ServerProcess::PrepareAutoCodec(CoordinatorOptions& options) const {
  if (!HasAuto(options.job.compression())) return;
  // A codec that was chosen once stays for the whole run, because other servers and workers
  // continue with it, and the workers' saved states depend on it. On one host no codec is used,
  // because memory is faster than any codec. Whether the job is on one host depends on the address
  // that others use, not on the listener: a listener on loopback may be the end of a tunnel.
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
    // Continue the count of earlier lives, so that no file replaces a file that an earlier life
    // still writes.
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

absl::Status ServerProcess::AwaitRun() {
  return TryFor(options_.start_within, options_.pause, [this]() -> absl::Status {
    ASSIGN_OR_RETURN(Descriptor lock, LockRun(options_.run_dir));
    run_lock_.emplace(std::move(lock));
    return absl::OkStatus();
  });
}

ServerPort::Services ServerProcess::CoordinatorServices() {
  return {.add =
              [this](grpc::ServerBuilder& builder) {
                if (host_ != nullptr) host_->Register(builder);
                if (ended_job_ != nullptr) builder.RegisterService(ended_job_.get());
              },
          .await =
              [this](ServerQueue* queue) {
                if (host_ != nullptr) host_->Await(queue);
                if (ended_job_ != nullptr) ended_job_->Await(queue);
              }};
}

ServerEnd ServerProcess::TellEnd() {
  spdlog::info("the job of this run folder is over");
  const bool without_summary = !HasSummary(options_.run_dir);
  const ServerEnd end = EndJob(ended_->outcome(), ended_->message());
  if (ended_job_ == nullptr) return end;
  const Duration stays =
      without_summary ? std::min(kLeaversWithin, options_.start_within) : options_.start_within;
  spdlog::info("this server stays for at most {:.0f} s to tell the workers", Seconds(stays));
  ended_job_->WaitUntilHeard(std::chrono::steady_clock::now() + stays);
  options_.pause(kStaysForQuestions);
  return end;
}

ServerEnd ServerProcess::EndJob(v1::JobState outcome, const std::string& message) const {
  if (options_.leaves_outcome) return EndOf(outcome, message);
  const bool stopped = outcome == v1::JOB_STOPPED, failed = outcome == v1::JOB_FAILED;
  const auto record = ReadCoordinatorRecord(options_.run_dir);
  // The record has the reason why the job finished before its full length.
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
