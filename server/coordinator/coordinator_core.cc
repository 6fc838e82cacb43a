#include "server/coordinator/coordinator_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/protocol.h"
#include "common/status.h"
#include "config/contributors.h"
#include "config/length.h"
#include "config/shards.h"
#include "server/coordinator/phrases.h"

namespace leeway {
namespace {

constexpr size_t kEvaluationsKept = 1000;
// Keeps sums of clocks from overflowing.
constexpr uint64_t kClockMax = uint64_t{1} << 40;

const v1::CheckpointManifest* StartCut(const CoordinatorOptions& options) {
  return options.resumed ? &options.resumed->manifest : nullptr;
}

// Of the servers; as the coordinator before this one was asked for.
uint32_t StartServers(const CoordinatorOptions& options) {
  const bool asked = options.before && options.before->servers() > 0;
  const uint32_t servers = asked ? options.before->servers() : options.job.servers().count();
  return std::min(servers, ShardsOf(options.job));
}

ServerTable StartTable(const CoordinatorOptions& options, Duration lease) {
  const uint32_t most = ShardsOf(options.job);
  ServerTable table(most, options.job.servers().count(), lease);
  table.Want(StartServers(options));
  if (!options.before || options.before->steps_per_epoch() == 0) return table;
  // Of those that it had when it was killed; it is server 0 itself.
  for (uint32_t i = 1; i < most; ++i) {
    const int index = static_cast<int>(i);
    table.Expect(i, index < options.before->server_nonces_size() &&
                        options.before->server_nonces(index) != 0);
  }
  return table;
}

Placement StartPlacement(const CoordinatorOptions& options) {
  const v1::Servers& servers = options.job.servers();
  const uint32_t shards = ShardsOf(options.job), wanted = StartServers(options);
  const bool known =
      options.before && options.before->placement().shards_size() == static_cast<int>(shards);
  if (known) return Placement(wanted, servers.replicas(), options.before->placement());
  return Placement(shards, wanted, servers.replicas());
}

}  // namespace

CoordinatorCore::CoordinatorCore(CoordinatorOptions options, Time now)
    : options_(std::move(options)),
      lease_(FromSeconds(options_.job.limits().lease_seconds())),
      created_(now),
      commits_sets_(CommitsSets(options_.job)),
      ranks_(options_.job.workers().count(), options_.incarnation_base, lease_),
      servers_(StartTable(options_, lease_)),
      placement_(StartPlacement(options_)),
      cuts_(placement_.shards(), ranks_.size(), StartCut(options_)),
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
  if (clock > kClockMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", rank, " says clock ", clock, ", which no job reaches"));
  }
  if (clock <= LargestClock()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("worker ", rank, " says clock ", clock,
                                                 "; the job has ", length_->clocks(), " clocks"));
}

uint64_t CoordinatorCore::LargestClock() const {
  // A resumed job may be shorter than it was, and its workers beyond its end; and where the job's
  // batches are counted a clock is made of as many as there happen to be.
  const bool by_batches = leases_ && !leases_->endless();
  if (!length_ || options_.resumed || by_batches) return kClockMax;
  return leeway::LargestClock(*length_, ranks_.size());
}

// ---- while it runs

std::optional<uint64_t> CoordinatorCore::StopClock() const {
  return aborted_ ? std::optional<uint64_t>(0) : stop_at_;
}

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
  if (request.epoch() != placement_.epoch() && OnRecord()) FillServers(reply);
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
