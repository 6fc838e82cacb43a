#include "server/coordinator/coordinator_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/blocks.h"
#include "common/protocol.h"
#include "common/status.h"
#include "config/contributors.h"
#include "config/length.h"
#include "server/coordinator/phrases.h"
#include "server/coordinator/schema.h"

namespace leeway {
namespace {

// Far above any data set; keeps lengths from overflowing.
constexpr uint64_t kStepsPerEpochMax = uint64_t{1} << 40;
constexpr size_t kEvaluationsKept = 1000;
// Keeps sums of clocks from overflowing.
constexpr uint64_t kClockMax = uint64_t{1} << 40;

std::string NameOf(const v1::RegisterWorkerRequest& request) {
  const std::string process = absl::StrCat("process ", request.pid(), " on ", request.host());
  return request.has_rank() ? absl::StrCat("worker ", request.rank(), " (", process, ")") : process;
}

Identity IdentityOf(const v1::RegisterWorkerRequest& request) {
  return {request.host(), request.pid(), request.nonce()};
}

std::optional<uint32_t> AskedRank(const v1::RegisterWorkerRequest& request) {
  if (!request.has_rank()) return std::nullopt;
  return request.rank();
}

const v1::CheckpointManifest* StartCut(const CoordinatorOptions& options) {
  return options.resumed ? &options.resumed->manifest : nullptr;
}

Placement StartPlacement(const CoordinatorOptions& options) {
  const v1::Servers& servers = options.job.servers();
  const bool known = options.before &&
                     options.before->placement().shards_size() == static_cast<int>(servers.count());
  if (known) return Placement(servers.replicas(), options.before->placement());
  return Placement(servers.count(), servers.replicas());
}

}  // namespace

CoordinatorCore::CoordinatorCore(CoordinatorOptions options, Time now)
    : options_(std::move(options)),
      lease_(FromSeconds(options_.job.limits().lease_seconds())),
      created_(now),
      commits_sets_(CommitsSets(options_.job)),
      ranks_(options_.job.workers().count(), options_.incarnation_base, lease_),
      servers_(options_.job.servers().count(), lease_),
      placement_(StartPlacement(options_)),
      cuts_(servers_.size(), ranks_.size(), KeepsWorkerState(options_.job), StartCut(options_)),
      grace_({options_.job.consistency().grace_deviations(),
              FromSeconds(options_.job.limits().grace_seconds())}),
      progress_(ranks_.size()),
      steps_per_epoch_(ranks_.size()),
      live_(ranks_.size(), true),
      generation_(options_.generation),
      last_tick_(now) {
  ranks_.GoBack(CutClock(), now);
  if (options_.resumed) {
    schema_ = options_.resumed->manifest.schema();
    schema_owner_ = absl::StrCat("the checkpoint ", options_.resumed->folder);
  }
}

bool CoordinatorCore::sync() const {
  return options_.job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC;
}

Duration CoordinatorCore::start_limit() const {
  return FromSeconds(options_.job.limits().start_seconds());
}

std::vector<Command> CoordinatorCore::TakeCommands() { return std::exchange(commands_, {}); }

// ---- who may speak

absl::Status CoordinatorCore::CheckJob(uint64_t job) const {
  if (job == options_.job_id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the message is for job ", absl::Hex(job, absl::kZeroPad16), ", this is job ",
      absl::Hex(options_.job_id, absl::kZeroPad16), ", ", options_.job.metadata().name()));
}

absl::Status CoordinatorCore::CheckPeer(const v1::Build& build, const std::string& who) const {
  if (build.protocol() == kProtocol) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(who, " speaks protocol ", build.protocol(), " (version '", build.version(),
                   "'), this coordinator protocol ", kProtocol, " (version '", kVersion,
                   "'): use programs of one version"));
}

absl::Status CoordinatorCore::CheckGeneration(uint64_t generation, const std::string& who) const {
  if (generation == generation_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      who, " speaks of generation ", generation, "; the job has gone back to ",
      cuts_.newest() ? absl::StrCat("the checkpoint at clock ", *cuts_.newest()) : "its beginning",
      ", which is generation ", generation_, ": register again"));
}

absl::Status CoordinatorCore::CheckSender(const Sender& sender) const {
  const auto& [job, generation, rank, incarnation, clock] = sender;
  RETURN_IF_ERROR(CheckJob(job));
  RETURN_IF_ERROR(ranks_.Check(rank, incarnation));
  RETURN_IF_ERROR(CheckGeneration(generation, absl::StrCat("worker ", rank)));
  // A resumed job may be shorter than it was, and its workers beyond its end.
  if (clock > kClockMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", rank, " says clock ", clock, ", which no job reaches"));
  }
  const bool bounded = length_.has_value() && !options_.resumed.has_value();
  if (!bounded || clock <= LargestClock(*length_, ranks_.size())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("worker ", rank, " says clock ", clock,
                                                 "; the job has ", length_->clocks(), " clocks"));
}

absl::Status CoordinatorCore::CheckModel(const v1::RegisterWorkerRequest& request,
                                         const std::string& who) const {
  if (!request.has_schema()) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(ValidateSchema(request.schema()), who));
  RETURN_IF_ERROR(CheckBatches(request, who));
  if (schema_) RETURN_IF_ERROR(CompareSchemas(schema_owner_, *schema_, who, request.schema()));
  if (request.steps_per_epoch() > kStepsPerEpochMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, ": ", request.steps_per_epoch(), " batches in a pass over its data"));
  }
  return absl::OkStatus();
}

// ---- registration

absl::StatusOr<v1::RegisterWorkerReply> CoordinatorCore::RegisterWorker(
    const v1::RegisterWorkerRequest& request, Time now) {
  const std::string who = NameOf(request);
  RETURN_IF_ERROR(CheckPeer(request.build(), who));
  if (!request.job_sha256().empty() && request.job_sha256() != options_.job_sha256) {
    return absl::FailedPreconditionError(
        absl::StrCat(who, " was started with another job file (sha256 ", request.job_sha256(),
                     ") than this job's (", options_.job_sha256, ")"));
  }
  if (request.job_only()) {
    v1::RegisterWorkerReply reply;
    *reply.mutable_job() = options_.job;
    reply.set_job_id(options_.job_id);
    return reply;
  }
  RETURN_IF_ERROR(RefuseLate(request, now));
  RETURN_IF_ERROR(CheckModel(request, who));
  ASSIGN_OR_RETURN(const uint32_t rank, Admit(request, who, now));
  Advance(now);
  if (phase_ <= Phase::kGoingBack) return absl::UnavailableError(Missing(now));
  RETURN_IF_ERROR(RefuseLate(request, now));
  return WorkerReply(rank);
}

absl::Status CoordinatorCore::RefuseLate(const v1::RegisterWorkerRequest& request, Time now) {
  // A life whose rank has left in order stands by until the end is on record.
  const auto asked = AskedRank(request);
  const bool stands_by = phase_ >= Phase::kSaving && !sealed_ && failure_.empty() && asked &&
                         *asked < ranks_.size() && ranks_[*asked].left();
  const bool open =
      phase_ < Phase::kStopping || (phase_ == Phase::kStopping && began_) || stands_by;
  if (open) return absl::OkStatus();
  // A worker that waited for the start knows now that there is none.
  const auto rank = ranks_.Holder(AskedRank(request), IdentityOf(request));
  if (sealed_ && rank && waiting_leavers_.erase(*rank) > 0) Advance(now);
  return RefusedAtTheEnd();
}

absl::Status CoordinatorCore::RefusedAtTheEnd() const {
  // Nobody goes away before the end is on record: a coordinator started again would wait for it.
  if (!sealed_) return absl::UnavailableError(Ending());
  // Where nothing is wrong there is just nothing left to do.
  if (failure_.empty()) return absl::AlreadyExistsError(Ending());
  return absl::FailedPreconditionError(Ending());
}

absl::StatusOr<uint32_t> CoordinatorCore::Admit(const v1::RegisterWorkerRequest& request,
                                                const std::string& who, Time now) {
  if (length_ && request.steps_per_epoch() > length_->steps_per_epoch()) {
    return absl::FailedPreconditionError(
        absl::StrCat(who, " has ", request.steps_per_epoch(),
                     " batches in a pass over its data; the job began with ",
                     length_->steps_per_epoch(), " at most: its data has changed"));
  }
  ASSIGN_OR_RETURN(const Membership::Claimed claimed,
                   ranks_.Claim(AskedRank(request), IdentityOf(request), sealed_, now));
  TakeModel(request, who, claimed.rank);
  if (!claimed.new_life) {
    SignOfLife(claimed.rank, now);
    return claimed.rank;
  }
  TakeBackLeases(claimed.rank);
  Emit({.name = "worker_registered",
        .rank = claimed.rank,
        .incarnation = ranks_[claimed.rank].incarnation,
        .message = absl::StrCat("process ", request.pid(), " on ", request.host())});
  // Of one that had left: it stands by.
  waiting_leavers_.erase(claimed.rank);
  if (ranks_[claimed.rank].left()) return claimed.rank;
  TellLive(claimed.rank, true, now);
  // In sync mode its part of what comes next would not be what it was going to be.
  if (phase_ > Phase::kGoingBack && lockstep() && cut_every_ > 0 &&
      KeepsWorkerState(options_.job)) {
    GoBack(absl::StrCat(who, " is a new process: what worker ", claimed.rank,
                        " kept between clocks is lost"),
           now);
  }
  return claimed.rank;
}

void CoordinatorCore::TakeModel(const v1::RegisterWorkerRequest& request, const std::string& who,
                                uint32_t rank) {
  if (!request.has_schema()) return;
  steps_per_epoch_[rank] = request.steps_per_epoch();
  batches_per_epoch_ = request.batches_per_epoch();
  if (schema_) return;
  schema_ = request.schema();
  schema_owner_ = who;
}

v1::RegisterWorkerReply CoordinatorCore::WorkerReply(uint32_t rank) const {
  v1::RegisterWorkerReply reply;
  *reply.mutable_job() = options_.job;
  reply.set_job_id(options_.job_id);
  reply.set_rank(rank);
  reply.set_incarnation(ranks_[rank].incarnation);
  FillServers(reply);
  *reply.mutable_schema() = *schema_;
  reply.set_block_elements(block_elements_);
  reply.set_resumed(cuts_.newest().has_value());
  reply.set_generation(generation_);
  if (ranks_[rank].left()) reply.set_left_at(ranks_[rank].clock);
  *reply.mutable_length() = *length_;
  reply.set_save_state(KeepsWorkerState(options_.job));
  reply.set_cut_every(cut_every_);
  // The asker's next life must know, or it could go on from where all have agreed to stop.
  if (const auto stop_at = StopClock()) reply.set_stop_at(*stop_at);
  return reply;
}

std::optional<uint64_t> CoordinatorCore::StopClock() const {
  return aborted_ ? std::optional<uint64_t>(0) : stop_at_;
}

// ---- while it runs

void CoordinatorCore::SignOfLife(uint32_t rank, Time now) {
  if (ranks_[rank].left() || !ranks_.Seen(rank, now)) return;
  Emit({.name = "worker_returned",
        .rank = rank,
        .incarnation = ranks_[rank].incarnation,
        .clock = ranks_[rank].clock});
  TellLive(rank, true, now);
}

void CoordinatorCore::TellLive(uint32_t rank, bool live, Time now) {
  // New blocks hold everybody up for everybody.
  if (phase_ <= Phase::kGoingBack || live_[rank] == live) return;
  live_[rank] = live;
  commands_.push_back(SetLive{rank, live});
  CommitSets(now);
}

absl::StatusOr<v1::HeartbeatReply> CoordinatorCore::Heartbeat(const v1::HeartbeatRequest& request,
                                                              Time now) {
  RETURN_IF_ERROR(CheckSender({request.job(), request.generation(), request.rank(),
                               request.incarnation(), request.clock()}));
  Record(request, now);
  if (!ranks_[request.rank()].left()) {
    ranks_.Report(request.rank(), request.clock());
    SignOfLife(request.rank(), now);
  }
  v1::HeartbeatReply reply;
  if (replicated() && request.epoch() != placement_.epoch()) FillServers(reply);
  reply.set_stop_requested(phase_ >= Phase::kStopping);
  if (const auto stop_at = StopClock()) reply.set_stop_at(*stop_at);
  return reply;
}

void CoordinatorCore::Record(const v1::HeartbeatRequest& request, Time now) {
  RankProgress& progress = progress_[request.rank()];
  progress.SetWaiting(request.waiting());
  for (const v1::StepMetrics& metrics : request.steps()) {
    if (progress.Record(metrics, now)) commands_.push_back(StepRecord{request.rank(), metrics});
  }
  for (const v1::EvaluationMetrics& metrics : request.evaluations()) {
    if (!progress.Record(metrics)) continue;
    if (evaluations_.size() == kEvaluationsKept) evaluations_.erase(evaluations_.begin());
    evaluations_.push_back(metrics);
    commands_.push_back(EvaluationRecord{request.rank(), metrics});
  }
}

absl::StatusOr<v1::StopAtReply> CoordinatorCore::StopAt(const v1::StopAtRequest& request,
                                                        Time now) {
  RETURN_IF_ERROR(CheckSender({request.job(), request.generation(), request.rank(),
                               request.incarnation(), request.clock()}));
  const std::string who = absl::StrCat("worker ", request.rank());
  if (phase_ < Phase::kStopping) {
    return absl::FailedPreconditionError(
        absl::StrCat(who, " asks where to stop, but nobody asked the job to stop"));
  }
  if (!began_) {
    return absl::FailedPreconditionError(
        absl::StrCat(who, " asks where to stop a job that has not begun"));
  }
  if (ranks_[request.rank()].left()) {
    return absl::FailedPreconditionError(absl::StrCat(who, " has left the job"));
  }
  v1::StopAtReply reply;
  if (!aborted_) {
    ASSIGN_OR_RETURN(const uint64_t stop_at, FixStop(request));
    reply.set_stop_at(stop_at);
  }
  ranks_.Report(request.rank(), request.clock());
  SignOfLife(request.rank(), now);
  return reply;
}

absl::StatusOr<uint64_t> CoordinatorCore::FixStop(const v1::StopAtRequest& request) {
  if (!sync()) return request.clock();
  if (commits_sets_) return FixStopHere();
  if (stop_at_) return *stop_at_;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    // A new life counts what its predecessor handed in as completed, so it can be one ahead.
    const uint64_t ahead = i == request.rank() ? 0 : 1;
    if (ranks_[i].clock <= request.clock() + ahead) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "worker ", request.rank(), " asks to stop at clock ", request.clock(), ", but worker ", i,
        " has completed ", ranks_[i].clock, " exchanges: the question is an old one"));
  }
  stop_at_ = std::min(request.clock() + 1, length_->clocks());
  Emit({.name = "stop_fixed", .rank = request.rank(), .clock = *stop_at_});
  return *stop_at_;
}

absl::StatusOr<v1::LeaveReply> CoordinatorCore::Leave(const v1::LeaveRequest& request, Time now) {
  RETURN_IF_ERROR(CheckSender({request.job(), request.generation(), request.rank(),
                               request.incarnation(), request.clock()}));
  if (!ranks_[request.rank()].left()) RETURN_IF_ERROR(TakeLeave(request, now));
  v1::LeaveReply reply;
  reply.set_sealed(sealed_);
  if (request.waits() && !sealed_) waiting_leavers_.insert(request.rank());
  if (sealed_ && waiting_leavers_.erase(request.rank()) > 0) Advance(now);
  return reply;
}

absl::Status CoordinatorCore::TakeLeave(const v1::LeaveRequest& request, Time now) {
  const uint32_t rank = request.rank();
  const std::string who = absl::StrCat("worker ", rank);
  const bool by_sum = length_ && length_->total_clocks() > 0;
  if (request.reason() == v1::LEAVE_FINISHED && !by_sum &&
      (!length_ || request.clock() < length_->clocks())) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " says it has finished at clock ", request.clock(), " of ",
                     length_ ? length_->clocks() : 0, ": it can only have stopped or failed"));
  }
  RankState state = RankState::kFinished;
  if (request.reason() == v1::LEAVE_FAILED) state = RankState::kFailed;
  // One that goes before anybody asked makes room for a replacement.
  if (request.reason() == v1::LEAVE_STOPPED) {
    state = phase_ >= Phase::kStopping ? RankState::kStopped : RankState::kLost;
  }
  ranks_.Leave(rank, state, request.clock(), now);
  TakeBackLeases(rank);
  Emit({.name = "worker_left",
        .rank = rank,
        .incarnation = request.incarnation(),
        .clock = request.clock(),
        .state = state == RankState::kLost ? "stopped" : RankStateName(state),
        .message = Shortened(request.message())});
  if (!sync() || state == RankState::kFailed || state == RankState::kLost) {
    TellLive(rank, false, now);
  }
  // The others can complete no exchange without this rank's contribution.
  if (lockstep() && (state == RankState::kFailed || state == RankState::kStopped)) {
    stop_at_ = std::min(stop_at_.value_or(ranks_[rank].clock), ranks_[rank].clock);
  }
  if (state == RankState::kFailed) {
    Fail(absl::StrCat(who, ": ", Shortened(request.message())), now);
  }
  WriteWholeCut();
  Advance(now);
  return absl::OkStatus();
}

}  // namespace leeway
