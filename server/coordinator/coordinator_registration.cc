// How workers come into the job.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/length.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/schema.h"

namespace leeway {
namespace {

// Far above any data set; keeps lengths from overflowing.
constexpr uint64_t kStepsPerEpochMax = uint64_t{1} << 40;

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

}  // namespace

absl::Status CoordinatorCore::CheckModel(const v1::RegisterWorkerRequest& request,
                                         const std::string& who) const {
  RETURN_IF_ERROR(CheckBatches(request, who));
  if (request.has_link()) RETURN_IF_ERROR(Annotate(LinkBook::Check(request.link()), who));
  if (!request.has_schema()) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(ValidateSchema(request.schema()), who));
  if (schema_) RETURN_IF_ERROR(CompareSchemas(schema_owner_, *schema_, who, request.schema()));
  if (request.steps_per_epoch() > kStepsPerEpochMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, ": ", request.steps_per_epoch(), " batches in a pass over its data"));
  }
  return absl::OkStatus();
}

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
  if (OnRecord() && recorded_begun_) return WorkerReply(rank);
  return absl::UnavailableError(
      "waiting for coordinator.json to say what this worker is going to be told");
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
  if (request.has_link()) links_.Take(claimed.rank, request.link());
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
  batches_per_epoch_ = request.batches_per_epoch();
  if (!request.has_schema()) return;
  steps_per_epoch_[rank] = request.steps_per_epoch();
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

}  // namespace leeway
