#include "worker/worker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include <spdlog/spdlog.h>

#include "client/calls/contribution_memory.h"
#include "client/participant/block_holder.h"
#include "client/session/coordinator_session.h"
#include "client/transport/link_probe.h"
#include "common/codec/choose.h"
#include "common/counted.h"
#include "common/log.h"
#include "common/retry_hint.h"
#include "common/rpc/channel.h"
#include "common/rpc/host.h"
#include "common/status.h"
#include "config/external.h"
#include "config/topology.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/job_files.h"
#include "worker/data/sources/test_data.h"
#include "worker/data/sources/training_data.h"
#include "worker/device/rank_device.h"
#include "worker/model/model.h"
#include "worker/trainer.h"

namespace leeway {
namespace {

// The time limit for asking how a job has ended.
constexpr std::chrono::seconds kHowItEndedAtMost(5);

// What a worker needs besides its parameters.
struct Equipment {
  std::unique_ptr<TrainingData> data;
  // The test data. Only rank 0 has it; null if there is nothing to evaluate on.
  std::unique_ptr<Dataset> test;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  // Shared memory for the group on this host. Null if the worker sends its own contributions
  // (workers.per_host).
  std::unique_ptr<ContributionMemory> contributions;
  // The server in this process. Null if workers hold no blocks.
  BlockHolder* holder = nullptr;
};

// Returns true if a rank's share of the data, and so the length of its epoch, depends on the rank.
bool DataDependOnRank(const v1::TrainingJob& job) {
  const auto type = job.data().partition().type_case();
  return type != v1::Partition::kIid && type != v1::Partition::TYPE_NOT_SET;
}

absl::StatusOr<uint32_t> PresumedRank(const WorkerOptions& options, const v1::TrainingJob& job) {
  const uint32_t workers = job.workers().count();
  if (options.rank.has_value() && *options.rank >= workers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--rank ", *options.rank, " does not exist: the job has ", Counted(workers, "worker")));
  }
  if (!options.rank.has_value() && workers > 1 && DataDependOnRank(job)) {
    return absl::InvalidArgumentError(
        "--rank is required, because in the job's partition each rank has its own data");
  }
  return options.rank.value_or(0);
}

constexpr char kNoSharedMemory[] =
    "workers.per_host: combine needs shared memory; workers.per_host: separate does not";

absl::StatusOr<Equipment> Equip(const v1::RegisterWorkerReply& offer, const WorkerOptions& options,
                                uint32_t rank) {
  const v1::TrainingJob& job = offer.job();
  // Only a worker that asks for a rank knows at this point on which device the rank began. For
  // other workers only the coordinator knows the device.
  const int index = static_cast<int>(rank);
  const bool known = options.rank.has_value() && index < offer.devices_size();
  // Gives up before the launcher and the coordinator do, so that this worker's log has the reason.
  const Duration start = FromSeconds(job.limits().start_seconds());
  const Duration patience = std::min(options.start_within, start) / 2;
  if (!options.absolute_paths) RETURN_IF_ERROR(CheckInDataFolder(job, options.data_dir));
  Equipment equipment;
  ASSIGN_OR_RETURN(equipment.data, TrainingData::Open(job, options.data_dir, rank));
  ASSIGN_OR_RETURN(equipment.backend, OpenRankDevice(options.make_backend, job.workers(), rank,
                                                     known ? offer.devices(index) : std::string(),
                                                     {patience, options.sleep}));
  ASSIGN_OR_RETURN(equipment.model,
                   Model::Build(job.model(), equipment.data->shape(), equipment.data->classes(),
                                *equipment.backend, equipment.data->dataset().labels_each(),
                                job.data().augment().mixup() > 0));
  // Allocates device memory before the worker joins, so that a model that does not fit ends the
  // worker at once.
  if (!equipment.backend->shares_host_memory()) {
    RETURN_IF_ERROR(equipment.model->Reserve(job.data().batch_size()));
  }
  if (rank == 0) {
    ASSIGN_OR_RETURN(equipment.test,
                     OpenTestDataOf(job, options.data_dir, equipment.data->dataset()));
  }
  if (job.workers().per_host() == v1::PER_HOST_COMBINE) {
    auto memory = ContributionMemory::Make(equipment.model->schema().total());
    RETURN_IF_ERROR(Annotate(memory.status(), kNoSharedMemory));
    equipment.contributions = *std::move(memory);
  }
  return equipment;
}

// Returns the rate to server 0 in bytes per second, for a job that chooses its codec by this rate.
// Returns nothing if the rate could not be measured. The worker trains even then.
std::optional<double> LinkOf(const std::shared_ptr<grpc::Channel>& coordinator) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto link = MeasureLink(HostIdentity(), now, EchoOver(coordinator));
  if (!link.ok()) {
    spdlog::warn(
        "the link to server 0 could not be measured; `auto` compression is chosen by the "
        "links of the other workers: {}",
        link.status().ToString());
    return std::nullopt;
  }
  if (std::isfinite(*link)) spdlog::info("the link to server 0: {:.4g} MB/s", *link / 1e6);
  return *link;
}

v1::RegisterWorkerRequest Introduction(const WorkerOptions& options, const v1::TrainingJob& job,
                                       const Equipment& equipment, std::optional<double> link) {
  v1::RegisterWorkerRequest request;
  if (options.rank.has_value()) request.set_rank(*options.rank);
  *request.mutable_schema() = equipment.model->schema();
  request.set_device(KindOf(*equipment.backend));
  request.set_steps_per_epoch(equipment.data->steps_per_epoch());
  if (job.data().assignment() == v1::ASSIGNMENT_LEASED) {
    request.set_batches_per_epoch(equipment.data->batches_per_epoch());
  } else if (equipment.data->steps_per_epoch() == 0) {
    spdlog::warn("this worker has no examples at all: it will compute nothing");
  }
  if (link) request.set_link(*link);
  if (equipment.contributions) {
    *request.mutable_contributions() = equipment.contributions->Offer();
    request.set_memory_host(options.memory_host);
  }
  return request;
}

// Completes the equipment once the rank is certain.
absl::Status Complete(const v1::RegisterWorkerReply& registration, const std::string& data_dir,
                      uint32_t presumed_rank, Equipment& equipment) {
  const v1::TrainingJob& job = registration.job();
  if (registration.rank() != presumed_rank) {
    ASSIGN_OR_RETURN(equipment.data, TrainingData::Open(job, data_dir, registration.rank()));
  }
  if (registration.rank() != 0) {
    equipment.test.reset();
  } else if (presumed_rank != 0) {
    ASSIGN_OR_RETURN(equipment.test, OpenTestDataOf(job, data_dir, equipment.data->dataset()));
  }
  return absl::OkStatus();
}

// Leaves the job. The result is `exit` if the coordinator has confirmed that the worker has left.
WorkerEnd Leave(CoordinatorSession& session, v1::LeaveReason reason, uint64_t clock,
                WorkerExit exit) {
  const absl::Status left = session.Leave(reason, clock, "");
  return {left.ok() ? exit : ExitOf(left), left};
}

WorkerEnd TrainAndLeave(const WorkerOptions& options, const v1::RegisterWorkerReply& registration,
                        CoordinatorSession& session, Equipment& equipment) {
  if (registration.has_left_at()) {
    spdlog::info("an earlier life of this rank has already completed its work");
    return Leave(session, v1::LEAVE_STOPPED, registration.left_at(), WorkerExit::kDone);
  }
  Trainer trainer({.registration = registration,
                   .session = session,
                   .data = *equipment.data,
                   .test = equipment.test.get(),
                   .model = *equipment.model,
                   .contributions = equipment.contributions.get(),
                   .holder = equipment.holder,
                   .data_dir = options.data_dir,
                   .transport = options.transport,
                   .sleep = options.sleep});
  const auto end = trainer.Run();
  if (end.ok()) {
    return Leave(session, *end, trainer.clock(),
                 *end == v1::LEAVE_STOPPED ? WorkerExit::kStopped : WorkerExit::kDone);
  }
  const WorkerExit exit = ExitOf(end.status());
  if (exit == WorkerExit::kPermanent) {
    const absl::Status left =
        session.Leave(v1::LEAVE_FAILED, trainer.clock(), std::string(end.status().message()));
    if (!left.ok()) spdlog::warn("{}", std::string(left.message()));
  }
  return {exit, end.status()};
}

// Returns true if a finished job was stopped before its end.
bool WasStopped(const std::shared_ptr<grpc::Channel>& channel) {
  const auto stub = v1::Coordinator::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kHowItEndedAtMost);
  v1::JobStatus status;
  return stub->GetJobStatus(&context, v1::GetJobStatusRequest(), &status).ok() &&
         status.state() == v1::JOB_STOPPED;
}

// Decides how an unregistered worker ends. The coordinator does not wait for such a worker. An
// error in the data, the model or the job is permanent. If a server does not answer, or workers do
// not come, the failure may be temporary.
WorkerEnd Refused(const absl::Status& status, const std::shared_ptr<grpc::Channel>& channel) {
  // An earlier life of this rank has completed its work.
  if (absl::IsAlreadyExists(status)) {
    return {WasStopped(channel) ? WorkerExit::kStopped : WorkerExit::kDone, absl::OkStatus()};
  }
  if (absl::IsAborted(status)) return {WorkerExit::kReplaced, status};
  const bool passes = IsRetryable(status.code());
  return {passes ? WorkerExit::kRestart : WorkerExit::kPermanent, status};
}

// Checks that the group is the same as before. A restarted coordinator forms the groups again, but
// servers may hold sums of the old group for clocks that are not complete. A different group would
// make the servers count contributions twice.
absl::Status CheckGroup(const v1::RegisterWorkerReply& before, const v1::RegisterWorkerReply& now) {
  if (!before.has_group() || before.generation() != now.generation()) return absl::OkStatus();
  const auto same = [](const v1::HostGroupMember& a, const v1::HostGroupMember& b) {
    return a.rank() == b.rank();
  };
  const auto& old = before.group().members();
  const auto& members = now.group().members();
  if (std::equal(old.begin(), old.end(), members.begin(), members.end(), same)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "worker ", now.rank(), " combined its contributions in a group of ", old.size(),
      " workers of its host before the coordinator was started again, but is now in a group of ",
      std::max(members.size(), 1),
      " (workers.per_host: combine): a worker has moved to another host in the middle of a clock; "
      "resume the job from its newest checkpoint"));
}

// Restricts the threads that are started from now on, which are the computing threads, to these
// processors.
void StayOn(const Processors& processors) {
  if (!processors.empty() && !KeepTo(processors)) {
    spdlog::warn("the operating system refuses to keep this worker on its processors");
  }
}

// Leaves the job because of an error that would come again after a restart.
WorkerEnd LeaveForGood(CoordinatorSession& session, const absl::Status& why) {
  session.Leave(v1::LEAVE_FAILED, 0, std::string(why.message())).IgnoreError();
  return {WorkerExit::kPermanent, why};
}

// Decides how a worker ends if it cannot hold blocks. The cause is mostly in its arguments, such as
// a missing rank or the certificate of another role.
WorkerEnd CannotHold(const absl::Status& status) {
  return {IsRetryable(status.code()) ? WorkerExit::kRestart : WorkerExit::kUsage, status};
}

// Registers with equipment that was made for the rank that the worker expects, and trains.
// Registers again if the job has gone back, or has gone on without this worker.
WorkerEnd RegisterAndTrain(const WorkerOptions& options, const CoordinatorSession::Options& process,
                           const std::shared_ptr<grpc::Channel>& channel,
                           const v1::TrainingJob& job, uint32_t equipped, Equipment& equipment) {
  const auto link = HasAuto(job.compression()) ? LinkOf(channel) : std::optional<double>();
  v1::RegisterWorkerRequest request = Introduction(options, job, equipment, link);
  v1::RegisterWorkerReply before;
  while (true) {
    CoordinatorSession session(channel, process);
    const auto registration = session.Register(request, FromSeconds(job.limits().start_seconds()));
    if (!registration.ok()) return Refused(registration.status(), channel);
    SetLogRole(absl::StrCat("worker ", registration->rank()));
    if (absl::Status status = Complete(*registration, options.data_dir, equipped, equipment);
        !status.ok()) {
      return LeaveForGood(session, status);
    }
    equipped = registration->rank();
    if (absl::Status status = CheckGroup(before, *registration); !status.ok()) {
      return LeaveForGood(session, status);
    }
    const WorkerEnd end = TrainAndLeave(options, *registration, session, equipment);
    // The other workers have gone on without this worker, and its state is valid at its own clock
    // only.
    const bool overtaken = absl::IsAlreadyExists(end.status);
    // The job has gone back to a checkpoint, or the coordinator was restarted, so the worker begins
    // again. If the same refusal comes a second time, it has another cause.
    const bool refused = absl::IsFailedPrecondition(end.status) && !SameLife(before, *registration);
    if (!overtaken && !refused) return end;
    spdlog::warn("{}", std::string(end.status.message()));
    before = *registration;
    request.set_rank(registration->rank());
  }
}

}  // namespace

WorkerExit ExitOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
      return WorkerExit::kReplaced;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
      return WorkerExit::kPermanent;
    default:
      return WorkerExit::kRestart;
  }
}

WorkerEnd RunWorker(const WorkerOptions& options) {
  const CoordinatorSession::Options process = {.address = options.coordinator,
                                               .host = options.host,
                                               .network = NetworkIdentity(),
                                               .pid = options.pid,
                                               .nonce = options.nonce};
  const auto channel = MakeChannel(options.coordinator);
  const auto offer =
      CoordinatorSession(channel, process).FetchJob(options.rank, options.start_within);
  if (!offer.ok()) return Refused(offer.status(), channel);
  const v1::TrainingJob& job = offer->job();
  const absl::Status computable = CheckHasLayers(job, "leeway-worker");
  if (!computable.ok()) return Refused(computable, channel);
  const auto rank = PresumedRank(options, job);
  if (!rank.ok()) return {WorkerExit::kUsage, rank.status()};
  absl::StatusOr<std::unique_ptr<BlockHolder>> holder = nullptr;
  // Start the holder's threads before StayOn, because these threads do not compute steps.
  if (WorkersHoldBlocks(job)) {
    holder =
        StartHolder(options.hold_blocks, {options.rank, options.coordinator, options.start_within});
  }
  if (!holder.ok()) return CannotHold(holder.status());
  StayOn(options.processors);
  auto equipment = Equip(*offer, options, *rank);
  if (!equipment.ok()) return Refused(equipment.status(), channel);
  equipment->holder = holder->get();
  const WorkerEnd end = RegisterAndTrain(options, process, channel, job, *rank, *equipment);
  if (*holder != nullptr && end.status.ok()) (*holder)->AwaitEnd();
  return end;
}

}  // namespace leeway
