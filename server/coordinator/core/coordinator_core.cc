#include "server/coordinator/core/coordinator_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/printable.h"
#include "common/status.h"
#include "config/topology.h"
#include "run/core/metrics_check.h"
#include "server/coordinator/core/peer_addresses.h"

namespace leeway {
namespace {

// The rank that runs the evaluations.
constexpr uint32_t kEvaluator = 0;

}  // namespace

CoordinatorCore::CoordinatorCore(CoordinatorOptions options, Time now)
    : model_(std::move(options)),
      life_(facts().options().generation, now),
      record_(facts().options().incarnation_base, LossScales(facts().options())),
      stop_(commands_, EarlyStop(facts().job().evaluation(), facts().options().ranks.evaluations)),
      workers_(facts(), commands_),
      fleet_(facts(), commands_),
      shards_(facts(), fleet_, commands_),
      rollout_(commands_),
      cuts_(facts(), workers_.ranks(), shards_, commands_),
      sets_(facts(), commands_),
      leases_(facts(), commands_) {
  workers_.StandAt(cuts_.CertainClock(), now);
}

// ---- which senders are accepted

absl::Status CoordinatorCore::CheckGeneration(uint64_t generation, const std::string& who) const {
  if (generation == life_.generation()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      who, " is at generation ", generation, ", but the job has gone back to ",
      cuts_.newest() ? absl::StrCat("the checkpoint at clock ", *cuts_.newest()) : "its beginning",
      " and is now at generation ", life_.generation(), ": register again"));
}

absl::Status CoordinatorCore::CheckSender(const Sender& sender) const {
  const auto& [job, generation, rank, incarnation, clock] = sender;
  RETURN_IF_ERROR(facts().CheckJob(job));
  RETURN_IF_ERROR(workers_.ranks().Check(rank, incarnation));
  RETURN_IF_ERROR(CheckGeneration(generation, absl::StrCat("worker ", rank)));
  if (clock > kClockMax) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", rank, " is at clock ", clock,
                                                   "; the largest possible clock is ", kClockMax));
  }
  if (clock <= LargestClock()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("worker ", rank, " is at clock ", clock,
                                                 ", but the job has ",
                                                 Counted(model_.length()->clocks(), "clock")));
}

absl::Status CoordinatorCore::CheckWorkerState(const Sender& sender) const {
  RETURN_IF_ERROR(CheckSender(sender));
  if (facts().keeps_state()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("worker ", sender.rank,
                   " sends state, but workers of this job keep no state between ", "clocks"));
}

absl::Status CoordinatorCore::CheckLife(uint64_t job, uint32_t rank, uint64_t incarnation) const {
  RETURN_IF_ERROR(facts().CheckJob(job));
  return workers_.ranks().Check(rank, incarnation);
}

MessageLimits CoordinatorCore::Limits() const {
  return {workers_.ranks().size(), shards_.places().shards(), life_.generation(),
          shards_.places().epoch(), LargestClock()};
}

// ---- while the job runs

void CoordinatorCore::SignOfLife(uint32_t rank, Time now) {
  if (workers_.Seen(rank, now)) TellLive(rank, true, now);
}

void CoordinatorCore::TellLive(uint32_t rank, bool live, Time now) {
  // For new blocks every rank counts as live, so the servers hear only of changes.
  if (life_.phase() <= Phase::kGoingBack || !workers_.Tell(rank, live)) return;
  CommitNextSet(now);
}

void CoordinatorCore::CommitNextSet(Time now) {
  const bool running = life_.phase() == Phase::kRunning || life_.phase() == Phase::kStopping;
  // All blocks end at the stop clock, so that clock gets no set.
  const bool open = running && !stop_.aborted() && !stop_.Reached(sets_.next());
  sets_.CommitNext(open, workers_.live(), life_.generation(), now);
}

absl::Status CoordinatorCore::RecordLossScales(const v1::HeartbeatRequest& request) {
  LossScales& scales = record_.loss_scales();
  // At the end nothing is recorded any more, and no later life needs the loss scale.
  if (request.loss_scales().empty() || life_.phase() >= Phase::kShutdown) return absl::OkStatus();
  if (!life_.began()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "worker ", request.rank(), " reports a loss scale of a job that has not begun"));
  }
  if (scales.Take(request)) WriteDown(v1::JOB_STARTING, false);
  if (scales.OnRecord(request.rank())) return absl::OkStatus();
  return absl::UnavailableError("waiting until coordinator.json contains this worker's loss scale");
}

absl::Status CoordinatorCore::RecordKeptState(const v1::HeartbeatRequest& request) {
  // At the end nothing is recorded any more, as in RecordLossScales.
  if (!request.keeps_state() || life_.phase() >= Phase::kShutdown) return absl::OkStatus();
  if (!life_.began()) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", request.rank(), " keeps state in a job that has not begun"));
  }
  if (!facts().programs_keep_state()) {
    model_.ProgramsKeepState();
    cuts_.Expect(model_.ShardsWithBlocks(), facts().keeps_state());
    WriteDown(v1::JOB_STARTING, false);
  }
  if (record_.programs_keep_state()) return absl::OkStatus();
  return absl::UnavailableError("waiting until coordinator.json says that workers keep state");
}

absl::StatusOr<v1::HeartbeatReply> CoordinatorCore::Heartbeat(const v1::HeartbeatRequest& request,
                                                              Time now) {
  RETURN_IF_ERROR(CheckSender({request.job(), request.generation(), request.rank(),
                               request.incarnation(), request.clock()}));
  RETURN_IF_ERROR(CheckMetrics(request, LargestClock()));
  RETURN_IF_ERROR(record_.loss_scales().Check(request, LargestClock()));
  RETURN_IF_ERROR(facts().CheckKeepsState(request));
  const std::vector<v1::EvaluationMetrics> evaluations = workers_.Record(request, now);
  if (!workers_.ranks()[request.rank()].left()) {
    workers_.Report(request.rank(), request.clock());
    SignOfLife(request.rank(), now);
  }
  RETURN_IF_ERROR(RecordLossScales(request));
  RETURN_IF_ERROR(RecordKeptState(request));
  if (request.rank() == kEvaluator) Take(evaluations, now);
  v1::HeartbeatReply reply;
  if (request.epoch() != shards_.places().epoch() && OnRecord()) shards_.Fill(reply);
  workers_.groups().Fill(request.rank(), reply);
  FillPeers(facts(), fleet_, request.peers_epoch(), reply);
  reply.set_stop_requested(life_.phase() >= Phase::kStopping);
  if (const auto stop_at = stop_.told()) reply.set_stop_at(*stop_at);
  return reply;
}

absl::Status CoordinatorCore::ContributionsHeld(const v1::ContributionsHeldRequest& request,
                                                Time now) {
  RETURN_IF_ERROR(facts().CheckJob(request.job()));
  const Placement& places = shards_.places();
  const std::string who = absl::StrCat("the owner of shard ", request.index());
  RETURN_IF_ERROR(CheckGeneration(request.generation(), who));
  if (!facts().commits_sets() || request.index() >= places.shards()) {
    return absl::InvalidArgumentError(absl::StrCat(
        who, " reports contributions, but the job ",
        facts().commits_sets() ? absl::StrCat("has only ", Counted(places.shards(), "shard"))
                               : "expects no such reports"));
  }
  RETURN_IF_ERROR(Annotate(CheckMessage(request, Limits()), who));
  // This is a late message from the shard's previous owner. No server holds those contributions
  // now.
  if (request.epoch() < places.owner_since(request.index())) return absl::OkStatus();
  sets_.TakeHeld(request, life_.generation(), now);
  CommitNextSet(now);
  return absl::OkStatus();
}

absl::StatusOr<v1::LeaseDataReply> CoordinatorCore::LeaseData(const v1::LeaseDataRequest& request,
                                                              Time now) {
  const uint32_t rank = request.rank();
  RETURN_IF_ERROR(
      CheckSender({request.job(), request.generation(), rank, request.incarnation(), 0}));
  RETURN_IF_ERROR(CheckMessage(request));
  const Membership& ranks = workers_.ranks();
  if (!leases_.open() || ranks[rank].left()) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", rank, " asks for batches",
                     leases_.open() ? ", but has left" : ", but the data is not leased"));
  }
  SignOfLife(rank, now);
  v1::LeaseDataReply reply = leases_.Lease(
      request, static_cast<uint32_t>(ranks.Count(RankState::kRunning)), model_.cut_every() > 0);
  Advance(now);
  return reply;
}

void CoordinatorCore::Take(const std::vector<v1::EvaluationMetrics>& evaluations, Time now) {
  for (const v1::EvaluationMetrics& each : evaluations) stop_.early_stop().Add(each);
  if (!evaluations.empty()) EndEarlyIfDue(now);
}

// ---- where to stop, and leaving

absl::StatusOr<v1::StopAtReply> CoordinatorCore::StopAt(const v1::StopAtRequest& request,
                                                        Time now) {
  RETURN_IF_ERROR(CheckSender({request.job(), request.generation(), request.rank(),
                               request.incarnation(), request.clock()}));
  const std::string who = absl::StrCat("worker ", request.rank());
  if (life_.phase() < Phase::kStopping) {
    return absl::FailedPreconditionError(
        absl::StrCat(who, " asks where to stop, but nobody asked the job to stop"));
  }
  if (!life_.began()) {
    return absl::FailedPreconditionError(
        absl::StrCat(who, " asks where to stop a job that has not begun"));
  }
  if (workers_.ranks()[request.rank()].left()) {
    return absl::FailedPreconditionError(absl::StrCat(who, " has left the job"));
  }
  v1::StopAtReply reply;
  if (!stop_.aborted()) {
    ASSIGN_OR_RETURN(const uint64_t stop_at, FixStop(request));
    reply.set_stop_at(stop_at);
  }
  workers_.Report(request.rank(), request.clock());
  SignOfLife(request.rank(), now);
  return reply;
}

absl::StatusOr<uint64_t> CoordinatorCore::FixStop(const v1::StopAtRequest& request) {
  const uint64_t every = MeanEvery(facts().job());
  if (!facts().sync()) return NextMultiple(request.clock(), every);
  if (facts().commits_sets()) return FixStopHere();
  return stop_.FixFor(request, workers_.ranks(), model_.length()->clocks(), every);
}

// Fixes the stop at the first clock without a set. The sets made so far take all blocks to that
// clock, even if ranks are lost, and later clocks get no set.
uint64_t CoordinatorCore::FixStopHere() {
  return stop_.FixAt(std::min(sets_.next(), model_.length()->clocks()), Complete());
}

absl::StatusOr<v1::LeaveReply> CoordinatorCore::Leave(const v1::LeaveRequest& request, Time now) {
  RETURN_IF_ERROR(CheckMessage(request));
  RETURN_IF_ERROR(CheckSender({request.job(), request.generation(), request.rank(),
                               request.incarnation(), request.clock()}));
  if (!workers_.ranks()[request.rank()].left()) RETURN_IF_ERROR(TakeLeave(request, now));
  v1::LeaveReply reply;
  reply.set_sealed(record_.sealed());
  if (request.waits() && !record_.sealed()) workers_.WaitForEnd(request.rank());
  if (record_.sealed() && workers_.StopWaiting(request.rank())) Advance(now);
  return reply;
}

absl::Status CoordinatorCore::TakeLeave(const v1::LeaveRequest& request, Time now) {
  const uint32_t rank = request.rank();
  const std::string who = absl::StrCat("worker ", rank);
  const auto& length = model_.length();
  const bool by_sum = length && length->total_clocks() > 0;
  if (request.reason() == v1::LEAVE_FINISHED && !by_sum &&
      (!length || request.clock() < length->clocks())) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " says that it has finished at clock ", request.clock(), " of ",
                     length ? length->clocks() : 0, ": it can only have stopped or failed"));
  }
  RankState state = RankState::kFinished;
  if (request.reason() == v1::LEAVE_FAILED) state = RankState::kFailed;
  // A worker that leaves before anybody has asked the job to stop gives its rank up to a
  // replacement.
  if (request.reason() == v1::LEAVE_STOPPED) {
    state = life_.phase() >= Phase::kStopping ? RankState::kStopped : RankState::kLost;
  }
  workers_.Leave(request, state, now);
  leases_.TakeBack(rank);
  const bool failed = state == RankState::kFailed;
  if (!facts().sync() || failed || state == RankState::kLost) TellLive(rank, false, now);
  // Without this rank's contribution the other ranks cannot complete an exchange.
  if (facts().lockstep() && (failed || state == RankState::kStopped)) {
    stop_.Lower(workers_.ranks()[rank].clock);
  }
  if (failed) FailForGood(absl::StrCat(who, ": ", Printable(request.message())), now);
  WriteWholeCut();
  Advance(now);
  return absl::OkStatus();
}

// ---- how commands went

void CoordinatorCore::Answered(const CommandAnswer& answer, Time now) {
  std::visit([&](const auto& each) { Take(each, now); }, answer);
}

void CoordinatorCore::Take(const ShutdownDone& done, Time now) {
  if (life_.phase() != Phase::kShutdown) return;
  fleet_.MarkShutDown(done.server);
  Advance(now);
}

}  // namespace leeway
