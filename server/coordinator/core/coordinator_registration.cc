// Workers join the job.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/brought_update.h"
#include "server/coordinator/core/coordinator_core.h"
#include "server/coordinator/core/peer_addresses.h"

namespace leeway {
namespace {

std::string NameOf(const v1::RegisterWorkerRequest& request) {
  const std::string process = absl::StrCat("process ", request.pid(), " on ", request.host());
  return request.has_rank() ? absl::StrCat("worker ", request.rank(), " (", process, ")") : process;
}

}  // namespace

absl::StatusOr<v1::RegisterWorkerReply> CoordinatorCore::RegisterWorker(
    const v1::RegisterWorkerRequest& request, Time now) {
  RETURN_IF_ERROR(CheckMessage(request));
  const std::string who = NameOf(request);
  RETURN_IF_ERROR(facts().CheckPeer(request.build(), who));
  const CoordinatorOptions& options = facts().options();
  if (request.reads_only()) {
    RETURN_IF_ERROR(fleet_.CheckWorker(who, request.network()));
    return ReaderReply(now);
  }
  if (!request.job_sha256().empty() && request.job_sha256() != options.job_sha256) {
    return absl::FailedPreconditionError(
        absl::StrCat(who, " was started with a job file (sha256 ", request.job_sha256(),
                     ") that differs from this job's (", options.job_sha256, ")"));
  }
  RETURN_IF_ERROR(fleet_.CheckWorker(who, request.network()));
  if (request.job_only()) {
    v1::RegisterWorkerReply reply;
    *reply.mutable_job() = options.job;
    reply.set_job_id(options.job_id);
    reply.mutable_devices()->Assign(model_.devices().begin(), model_.devices().end());
    return reply;
  }
  RETURN_IF_ERROR(RefuseLate(request, now));
  RETURN_IF_ERROR(leases_.Check(request, who));
  RETURN_IF_ERROR(model_.Check(request, who));
  ASSIGN_OR_RETURN(const uint32_t rank, Admit(request, who, now));
  Advance(now);
  if (life_.phase() <= Phase::kGoingBack) return absl::UnavailableError(Missing(now));
  RETURN_IF_ERROR(RefuseLate(request, now));
  const bool known = record_.HasIncarnation(workers_.ranks()[rank].incarnation);
  if (OnRecord() && record_.begun() && known) return WorkerReply(rank);
  return absl::UnavailableError("waiting until coordinator.json contains the facts in this reply");
}

absl::Status CoordinatorCore::RefuseLate(const v1::RegisterWorkerRequest& request, Time now) {
  const Membership& ranks = workers_.ranks();
  const Phase phase = life_.phase();
  const bool sealed = record_.sealed();
  // A new life of a rank that has left in order waits until the end is on record.
  const bool stands_by = phase >= Phase::kSaving && !sealed && !stop_.failed() &&
                         request.has_rank() && request.rank() < ranks.size() &&
                         ranks[request.rank()].left();
  const bool open =
      phase < Phase::kStopping || (phase == Phase::kStopping && life_.began()) || stands_by;
  if (open) return absl::OkStatus();
  // A worker that waited for the start now knows that the job does not start.
  const auto rank = workers_.Holder(request);
  if (sealed && rank && workers_.StopWaiting(*rank)) Advance(now);
  return RefusedAtTheEnd();
}

absl::Status CoordinatorCore::RefusedAtTheEnd() const {
  // No process may leave before the end is on record, because a restarted coordinator would wait
  // for that process.
  if (!record_.sealed()) return absl::UnavailableError(stop_.Ending());
  // If the job has not failed, the worker has nothing left to do.
  if (!stop_.failed()) return absl::AlreadyExistsError(stop_.Ending());
  return absl::FailedPreconditionError(stop_.Ending());
}

absl::StatusOr<uint32_t> CoordinatorCore::Admit(const v1::RegisterWorkerRequest& request,
                                                const std::string& who, Time now) {
  RETURN_IF_ERROR(model_.CheckSteps(request, who));
  // If Place fails, Claim reports the error later.
  if (const auto rank = workers_.Place(request); rank.ok()) {
    RETURN_IF_ERROR(model_.CheckDevice(request, *rank, who));
  }
  std::optional<uint32_t> place = workers_.Holder(request);
  if (request.has_rank()) place = request.rank();
  RETURN_IF_ERROR(workers_.groups().Check(request, place, who));
  ASSIGN_OR_RETURN(const Membership::Claimed claimed,
                   workers_.Claim(request, record_.sealed(), now));
  const uint32_t rank = claimed.rank;
  leases_.Take(request);
  if (model_.Take(request, who, rank)) {
    commands_.Emit({.name = "update_brought",
                    .message = absl::StrCat("the update rule is ", UpdateYaml(request.update()),
                                            ", brought by ", who)});
  }
  fleet_.TakeNetwork(rank, request.network());
  workers_.groups().Take(request, rank);
  if (!claimed.new_life) {
    SignOfLife(rank, now);
    return rank;
  }
  RecordIncarnation(workers_.ranks()[rank].incarnation);
  leases_.TakeBack(rank);
  workers_.Registered(request, rank);
  if (workers_.ranks()[rank].left()) return rank;
  TellLive(rank, true, now);
  // The worker's state is lost. Without it the next contributions would be wrong.
  if (life_.phase() > Phase::kGoingBack && facts().lockstep() && model_.cut_every() > 0 &&
      facts().keeps_state()) {
    GoBack(
        absl::StrCat(who, " is a new process: what worker ", rank, " kept between clocks is lost"),
        now);
  }
  return rank;
}

void CoordinatorCore::RecordIncarnation(uint64_t incarnation) {
  if (!record_.Reserve(incarnation)) return;
  // Before the job begins, another record is written before any worker gets its answer. At the
  // job's end no worker gets an answer. In both cases no record is necessary here.
  if (!life_.began() || life_.phase() >= Phase::kShutdown) return;
  WriteDown(v1::JOB_STARTING, false);
}

absl::StatusOr<v1::RegisterWorkerReply> CoordinatorCore::ReaderReply(Time now) const {
  if (life_.phase() <= Phase::kGoingBack) return absl::UnavailableError(Missing(now));
  if (!life_.under_way()) return RefusedAtTheEnd();
  return ModelReply();
}

v1::RegisterWorkerReply CoordinatorCore::ModelReply() const {
  v1::RegisterWorkerReply reply;
  *reply.mutable_job() = facts().job();
  reply.set_job_id(facts().options().job_id);
  shards_.Fill(reply);
  *reply.mutable_schema() = *model_.schema();
  reply.set_block_elements(model_.block_elements());
  reply.set_generation(life_.generation());
  *reply.mutable_length() = *model_.length();
  return reply;
}

v1::RegisterWorkerReply CoordinatorCore::WorkerReply(uint32_t rank) const {
  const Rank& place = workers_.ranks()[rank];
  v1::RegisterWorkerReply reply = ModelReply();
  reply.set_rank(rank);
  reply.set_incarnation(place.incarnation);
  workers_.groups().Fill(rank, reply);
  FillPeers(facts(), fleet_, reply);
  reply.set_resumed(cuts_.newest().has_value());
  if (place.left()) reply.set_left_at(place.clock);
  reply.set_save_state(facts().keeps_state());
  reply.set_cut_every(model_.cut_every());
  record_.loss_scales().Fill(rank, reply);
  // The next life of a rank that has asked where to stop must know the stop clock. Otherwise it
  // could continue beyond the clock at which all workers stop.
  if (const auto stop_at = stop_.told()) reply.set_stop_at(*stop_at);
  return reply;
}

}  // namespace leeway
