#include "server/node/server_node.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/files/private_files.h"
#include "common/protocol.h"
#include "common/retry_hint.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/patient_call.h"
#include "common/service/unary_call.h"
#include "common/status.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/restore.h"
#include "server/coordinator/core/schema.h"
#include "server/node/configuration_check.h"

namespace leeway {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(250);
// The time between heartbeats while another process waits for a message from this server. It is
// short because until the coordinator knows that a replica is complete, the death of a server sends
// the job back to a checkpoint.
constexpr Duration kSoon = std::chrono::milliseconds(25);
// The maximum time between heartbeats. A restarted coordinator hears from its servers within this
// time.
constexpr Duration kHeartbeatAtMost = std::chrono::milliseconds(500);
constexpr Duration kCallAtMost = std::chrono::seconds(5);
// The time limit for reporting a cut. A broken connection, or a coordinator that is away for a
// moment, must not cost a checkpoint.
constexpr Duration kReportWithin = std::chrono::seconds(15);
// The time between questions about unknown incarnations.
constexpr Duration kQuestionsApart = std::chrono::milliseconds(10);
// The time limit of calls from the thread that also gives up waiting requests.
constexpr Duration kShortCallAtMost = std::chrono::seconds(1);
// The share of a lease that the server uses, because clocks do not run at the same rate.
constexpr double kLeaseShare = 0.9;

std::unique_ptr<grpc::ClientContext> Within(Duration limit) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::microseconds>(limit));
  return context;
}

}  // namespace

ServerNode::~ServerNode() = default;

void ServerNode::Close() {
  parameter_service_.Close();
  MutexLock configuring(configuring_);
  closed_ = true;
  Retire();
}

absl::Status ServerNode::Join(const Options& options, Time deadline) {
  options_ = options;
  coordinator_ = v1::Coordinator::NewStub(MakeChannel(options.coordinator));
  absl::StatusOr<v1::RegisterServerReply> reply;
  BootTime sent;
  do {
    sent = boot_now_();
    reply = Register(kCallAtMost);
    // A call that does not wait gets the answer that the coordinator has by now.
    if (absl::IsDeadlineExceeded(reply.status())) {
      reply = Register(kShortCallAtMost, /*wait=*/false);
    }
  } while (IsRetryable(reply.status().code()) && std::chrono::steady_clock::now() < deadline &&
           !IsOverAfter(kSoon));
  if (absl::IsAlreadyExists(reply.status())) HearsOutcome();
  RETURN_IF_ERROR(Annotate(
      reply.status(), absl::StrCat("registering server ", options.index, " (", options.advertised,
                                   ") with the coordinator at ", options.coordinator)));
  job_ = reply->job();
  job_id_ = reply->job_id();
  run_dir_ = reply->run_dir();
  if (job_.metadata().private_()) KeepFilesPrivate();
  parameter_service_.SetLimits(job_);
  parameter_service_.table().lives().Expect(job_.workers().count(),
                                            [this] { AskForIncarnations(); });
  // If the coordinator never hears of this server again, it counts the lease from this moment.
  parameter_service_.table().SetLease(sent +
                                      FromSeconds(kLeaseShare * job_.limits().lease_seconds()));
  RETURN_IF_ERROR(TryRunDir());
  MutexLock lock(mutex_);
  joined_ = true;
  return absl::OkStatus();
}

absl::StatusOr<v1::RegisterServerReply> ServerNode::Register(Duration limit, bool wait) {
  v1::RegisterServerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_index(options_.index);
  request.set_address(options_.advertised);
  request.set_local_address(options_.local_address);
  request.set_host(options_.host);
  request.set_network(options_.network);
  request.set_nonce(options_.nonce);
  request.set_pid(options_.pid);
  request.set_job(job_id_);
  {
    MutexLock lock(mutex_);
    if (held_generation_) request.set_held_generation(*held_generation_);
  }
  auto context = Within(limit);
  context->set_wait_for_ready(wait);
  v1::RegisterServerReply reply;
  const grpc::Status status = coordinator_->RegisterServer(context.get(), request, &reply);
  RETURN_IF_ERROR(ResultOf(status, *context));
  return reply;
}

absl::Status ServerNode::RegisterAgain() {
  ASSIGN_OR_RETURN(const v1::RegisterServerReply reply, Register(kShortCallAtMost));
  if (reply.job_id() == job_id_) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("another job, ", absl::Hex(reply.job_id()),
                                               ", has its coordinator at ", options_.coordinator));
}

bool ServerNode::IsOverAfter(Duration pause) {
  MutexLock lock(mutex_);
  const Time until = std::chrono::steady_clock::now() + pause;
  if (!over_ && !asks_incarnations_) changed_.WaitUntil(mutex_, until);
  return over_;
}

void ServerNode::AskForIncarnations() {
  MutexLock lock(mutex_);
  // A sender with an invented incarnation must not cause a storm of questions.
  if (std::chrono::steady_clock::now() - asked_incarnations_ < kQuestionsApart) return;
  asks_incarnations_ = true;
  changed_.NotifyAll();
}

bool ServerNode::AsksForIncarnations() {
  MutexLock lock(mutex_);
  return asks_incarnations_;
}

Duration ServerNode::HeartbeatsApart() const {
  return std::min<Duration>(FromSeconds(job_.limits().lease_seconds()) / 4, kHeartbeatAtMost);
}

ServerNode::Outcome ServerNode::WaitUntilOver() {
  const Duration every = HeartbeatsApart();
  Time heard = std::chrono::steady_clock::now();
  Time next_heartbeat = heard;
  Time next_tick = heard;
  std::vector<Replica> told;
  // Whether another process waits for the message that a newly registered server is alive, or that
  // a replica is complete.
  bool awaited = true;
  while (!IsOverAfter(awaited ? kSoon : kTick)) {
    const Time now = std::chrono::steady_clock::now();
    if (now >= next_tick) {
      parameter_service_.Tick();
      TellReadiness();
      next_tick = now + kTick;
    }
    std::vector<Replica> replicas = FindReplicas();
    if (now < next_heartbeat && replicas == told && !AsksForIncarnations()) continue;
    next_heartbeat = now + every;
    absl::Status status = Heartbeat(replicas);
    told = std::move(replicas);
    awaited =
        std::any_of(told.begin(), told.end(), [](const Replica& each) { return !each.synced; });
    // A coordinator that was killed and restarted knows no servers.
    if (absl::IsFailedPrecondition(status)) {
      status = RegisterAgain();
      awaited |= status.ok();
      if (status.ok()) next_heartbeat = now;
    }
    if (status.ok()) heard = std::chrono::steady_clock::now();
    if (const auto outcome = OutcomeOf(status, heard)) return *outcome;
  }
  return OutcomeOfEnd();
}

v1::JobState ServerNode::job_outcome() {
  MutexLock lock(mutex_);
  return job_outcome_;
}

bool ServerNode::HearsOutcome() {
  auto context = Within(kShortCallAtMost);
  v1::JobStatus status;
  const grpc::Status answer =
      coordinator_->GetJobStatus(context.get(), v1::GetJobStatusRequest(), &status);
  // Before this server has joined, it accepts the answer of any job.
  if (!answer.ok() || (job_id_ != 0 && status.job_id() != job_id_)) return false;
  MutexLock lock(mutex_);
  job_outcome_ = status.state();
  return true;
}

std::optional<ServerNode::Outcome> ServerNode::OutcomeOf(const absl::Status& status, Time heard) {
  if (absl::IsAlreadyExists(status)) {
    // The server's next life may belong to the job that is there now.
    return HearsOutcome() ? OutcomeOfEnd() : Outcome::kCoordinatorLost;
  }
  if (absl::IsAborted(status)) {
    spdlog::error("{}", std::string(status.message()));
    return Outcome::kReplaced;
  }
  const Duration patience = FromSeconds(job_.limits().start_seconds());
  if (std::chrono::steady_clock::now() - heard <= patience) return std::nullopt;
  spdlog::error("the coordinator at {} has not answered for {:.0f} s: {}", options_.coordinator,
                Seconds(patience), std::string(status.message()));
  return Outcome::kCoordinatorLost;
}

std::vector<ServerNode::Replica> ServerNode::FindReplicas() {
  std::vector<HeldModel::Replicated> replicated;
  {
    MutexLock lock(mutex_);
    replicated = replicated_;
  }
  std::vector<Replica> found;
  for (const HeldModel::Replicated& each : replicated) {
    found.push_back({each.number, each.since_epoch, each.shard->replica_synced()});
  }
  return found;
}

absl::Status ServerNode::Heartbeat(const std::vector<Replica>& replicas) {
  v1::ServerHeartbeatRequest request;
  request.set_job(job_id_);
  request.set_index(options_.index);
  request.set_nonce(options_.nonce);
  std::optional<uint64_t> epoch;
  {
    MutexLock lock(mutex_);
    request.set_generation(held_generation_.value_or(0));
    epoch = held_epoch_;
    request.set_wants_incarnations(std::exchange(asks_incarnations_, false));
    if (request.wants_incarnations()) asked_incarnations_ = std::chrono::steady_clock::now();
  }
  for (const Replica& replica : replicas) {
    if (!replica.synced) continue;
    v1::SyncedShard& synced = *request.add_synced();
    synced.set_shard(replica.shard);
    synced.set_since_epoch(replica.since_epoch);
  }
  const ByteBudget::Load load = parameter_service_.table().budget().load();
  request.mutable_load()->set_held_bytes(load.held_bytes);
  request.mutable_load()->set_held_bytes_max(load.held_bytes_max);
  request.mutable_load()->set_refused_contributions(load.refused_contributions);
  request.mutable_load()->set_refused_unread(load.refused_unread);
  const BootTime sent = boot_now_();
  v1::ServerHeartbeatReply reply;
  auto context = Within(kShortCallAtMost);
  const grpc::Status status = coordinator_->ServerHeartbeat(context.get(), request, &reply);
  RETURN_IF_ERROR(ResultOf(status, *context));
  if (request.wants_incarnations()) {
    parameter_service_.table().lives().Learn(
        {reply.incarnations().begin(), reply.incarnations().end()});
  }
  // This server counts the lease from when it sent the heartbeat. The coordinator counts from when
  // it received the heartbeat, which is later, and by its own clock. A server that does not know
  // the placement may hold blocks that other servers own by now.
  if (!epoch.has_value() || *epoch == reply.epoch()) {
    parameter_service_.table().SetLease(sent +
                                        FromSeconds(kLeaseShare * job_.limits().lease_seconds()));
  }
  return absl::OkStatus();
}

absl::Status ServerNode::CheckJob(uint64_t job) const {
  if (job == job_id_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", absl::Hex(job), " is not the job of this server (", absl::Hex(job_id_), ")"));
}

absl::Status ServerNode::CheckJoined(uint64_t job) {
  MutexLock lock(mutex_);
  if (!joined_) {
    return absl::UnavailableError(
        "the server is not ready yet: it is registering or trying out the object store");
  }
  return CheckJob(job);
}

absl::StatusOr<ServerNode::Take> ServerNode::HowToTake(const v1::ConfigureRequest& request) {
  if (model_ == nullptr || model_->generation() < request.generation()) return Take::kAll;
  if (model_->Is(request)) return Take::kHere;
  const bool newer =
      model_->generation() == request.generation() && model_->epoch() < request.placement().epoch();
  if (newer) return Take::kPlacement;
  return absl::FailedPreconditionError(
      absl::StrCat("the server is at generation ", model_->generation(), ", epoch ",
                   model_->epoch(), "; this configuration is of generation ", request.generation(),
                   ", epoch ", request.placement().epoch()));
}

absl::Status ServerNode::CheckTakeable(const v1::ConfigureRequest& request, Take take) const {
  RETURN_IF_ERROR(CheckConfiguration(request, {job_, options_.index, run_dir_}));
  if (model_ != nullptr) RETURN_IF_ERROR(model_->CheckFollows(request));
  if (take == Take::kAll && !request.load()) {
    for (const v1::ShardPlace& place : request.placement().shards()) {
      if (place.owner() != options_.index) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("server ", options_.index, " cannot own a shard of generation ",
                       request.generation(), ", because it has no blocks of that generation"));
    }
  }
  if (!request.load() || request.checkpoint().empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckInRunFolder(run_dir_, request.checkpoint()));
  ASSIGN_OR_RETURN(const CheckpointReader reader,
                   CheckpointReader::Open(request.checkpoint(), CheckpointVerify::kHeaders));
  return CompareSchemas("the checkpoint", reader.manifest().schema(), "the configuration",
                        request.schema());
}

void ServerNode::Retire() {
  {
    MutexLock lock(mutex_);
    held_generation_.reset();
    held_epoch_.reset();
    replicated_.clear();
  }
  model_.reset();
}

absl::Status ServerNode::MakeModel(const v1::ConfigureRequest& request) {
  // The old model is released first, because two models would need twice the memory and would write
  // the same files.
  parameter_service_.table().Serve({job_id_, request.generation(), {}, {}, nullptr});
  Retire();
  const auto report = [this, generation = request.generation()](
                          uint32_t shard, uint64_t cut,
                          const absl::StatusOr<v1::SavedShard>& saved) {
    ReportCut(generation, shard, cut, saved);
  };
  ASSIGN_OR_RETURN(model_, HeldModel::Make({.job = job_,
                                            .job_id = job_id_,
                                            .server = options_.index,
                                            .host = options_.host,
                                            .queue = queue_,
                                            .coordinator = options_.coordinator,
                                            .report = report},
                                           request));
  return absl::OkStatus();
}

absl::Status ServerNode::Configure(const v1::ConfigureRequest& request) {
  RETURN_IF_ERROR(CheckJoined(request.job()));
  MutexLock configuring(configuring_);
  if (closed_) return absl::UnavailableError("the server is ending");
  ASSIGN_OR_RETURN(const Take take, HowToTake(request));
  if (take == Take::kHere) return absl::OkStatus();
  RETURN_IF_ERROR(CheckTakeable(request, take));
  if (take == Take::kAll) RETURN_IF_ERROR(MakeModel(request));
  const absl::Status placed = model_->Place(request);
  if (!placed.ok()) {
    // The server does not have all shards of the placement, so it serves none. The coordinator
    // decides what to do.
    parameter_service_.table().Serve({job_id_, request.generation(), {}, {}, nullptr});
    Retire();
    return placed;
  }
  parameter_service_.table().Serve(model_->holdings());
  spdlog::info(
      "{}{}", model_->Describe(),
      request.load() && !request.checkpoint().empty() ? ", from " + request.checkpoint() : "");
  MutexLock lock(mutex_);
  held_generation_ = model_->generation();
  held_epoch_ = model_->epoch();
  replicated_ = model_->replicated();
  // The server asks for the incarnations now, because workers are about to connect.
  asks_incarnations_ = true;
  changed_.NotifyAll();
  return absl::OkStatus();
}

void ServerNode::ReportCut(uint64_t generation, uint32_t shard, uint64_t cut,
                           const absl::StatusOr<v1::SavedShard>& saved) {
  v1::ShardSavedRequest request;
  request.set_job(job_id_);
  request.set_generation(generation);
  request.set_index(shard);
  request.set_clock(cut);
  if (saved.ok()) {
    *request.mutable_shard() = *saved;
  } else {
    request.set_error(std::string(saved.status().message()));
    spdlog::error("the cut at clock {} failed: {}", cut, request.error());
  }
  const absl::Status status =
      CallPatiently({.attempt_max = kCallAtMost,
                     .total = kReportWithin,
                     .pause = [this](Duration pause) { return !IsOverAfter(pause); }},
                    [&](grpc::ClientContext& context) {
                      v1::ShardSavedReply reply;
                      return coordinator_->ShardSaved(&context, request, &reply);
                    });
  if (!status.ok()) {
    spdlog::warn("cannot report the cut at clock {}: {}", cut, std::string(status.message()));
  }
}

void ServerNode::Await(ServerQueue* queue) {
  queue_ = queue;
  parameter_service_.Await(queue);
  ServeUnary<v1::ConfigureRequest, v1::ConfigureReply>(
      queue, this, "leeway.v1.ShardControl.Configure",
      [this, queue](const v1::ConfigureRequest& request, auto done) {
        queue->Later([this, request, done = std::move(done)] {
          // The coordinator retries until the server has joined, so that error is not logged.
          const absl::Status joined = CheckJoined(request.job());
          const absl::Status status = joined.ok() ? Configure(request) : joined;
          if (joined.ok() && !status.ok()) {
            spdlog::error("cannot apply the configuration: {}", std::string(status.message()));
          }
          done(Reply<v1::ConfigureReply>(status));
        });
      });
  ServeUnary<v1::SetLiveRequest, v1::SetLiveReply>(
      queue, this, "leeway.v1.ShardControl.SetLive",
      [this](const v1::SetLiveRequest& request, auto done) {
        done(Reply<v1::SetLiveReply>(SetLive(request)));
      });
  ServeUnary<v1::CommitSetRequest, v1::CommitSetReply>(
      queue, this, "leeway.v1.ShardControl.CommitSet",
      [this, queue](const v1::CommitSetRequest& request, auto done) {
        done(Reply<v1::CommitSetReply>(parameter_service_.CommitSet(request, queue)));
      });
  ServeUnary<v1::SaveRequest, v1::SavedShard>(
      queue, this, "leeway.v1.ShardControl.Save",
      [this, queue](const v1::SaveRequest& request, auto done) {
        queue->Later([this, request, done = std::move(done)] { done(Save(request)); });
      });
  ServeUnary<v1::ShutdownRequest, v1::ShutdownReply>(
      queue, this, "leeway.v1.ShardControl.Shutdown",
      [this](const v1::ShutdownRequest& request, auto done) {
        done(Reply<v1::ShutdownReply>(Shutdown(request)));
      });
}

absl::Status ServerNode::SetLive(const v1::SetLiveRequest& request) {
  RETURN_IF_ERROR(CheckJoined(request.job()));
  if (request.rank() >= job_.workers().count()) {
    return absl::InvalidArgumentError(absl::StrCat("rank: ", request.rank(),
                                                   " does not exist; the job has ",
                                                   Counted(job_.workers().count(), "worker")));
  }
  // This applies to the shards that the server has now. The coordinator repeats the call when the
  // server gets more shards.
  parameter_service_.SetLive(request.rank(), request.live());
  return absl::OkStatus();
}

absl::StatusOr<v1::SavedShard> ServerNode::Save(const v1::SaveRequest& request) {
  RETURN_IF_ERROR(CheckJoined(request.job()));
  MutexLock configuring(configuring_);
  if (model_ == nullptr) return absl::UnavailableError("the server has no model yet");
  if (model_->generation() != request.generation()) {
    return absl::FailedPreconditionError(absl::StrCat("cannot save generation ",
                                                      request.generation(), "; this server holds ",
                                                      "generation ", model_->generation()));
  }
  return model_->Save(request.shard(), request.clock());
}

absl::Status ServerNode::Shutdown(const v1::ShutdownRequest& request) {
  RETURN_IF_ERROR(CheckJoined(request.job()));
  if (request.outcome() < v1::JOB_FINISHED || request.outcome() > v1::JOB_FAILED) {
    return absl::InvalidArgumentError(
        absl::StrCat("outcome: ", request.outcome(), " is not an outcome of a job"));
  }
  {
    MutexLock lock(mutex_);
    over_ = true;
    job_outcome_ = request.outcome();
  }
  changed_.NotifyAll();
  return absl::OkStatus();
}

}  // namespace leeway
