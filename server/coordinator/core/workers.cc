#include "server/coordinator/core/workers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/printable.h"

namespace leeway {
namespace {

Identity IdentityOf(const v1::RegisterWorkerRequest& request) {
  return {request.host(), request.pid(), request.nonce()};
}

std::optional<uint32_t> AskedRank(const v1::RegisterWorkerRequest& request) {
  if (!request.has_rank()) return std::nullopt;
  return request.rank();
}

}  // namespace

Workers::Workers(const JobFacts& facts, Commands& commands)
    : commands_(commands),
      ranks_(facts.job().workers().count(), facts.options().incarnation_base, facts.lease()),
      groups_(facts),
      live_(ranks_.size(), true),
      progress_(ranks_.size()) {}

size_t Workers::Missing() const {
  return ranks_.Count(RankState::kWaiting) + ranks_.Count(RankState::kLost);
}

absl::StatusOr<Membership::Claimed> Workers::Claim(const v1::RegisterWorkerRequest& request,
                                                   bool final, Time now) {
  return ranks_.Claim(AskedRank(request), IdentityOf(request), final, now);
}

std::optional<uint32_t> Workers::Holder(const v1::RegisterWorkerRequest& request) const {
  return ranks_.Holder(AskedRank(request), IdentityOf(request));
}

absl::StatusOr<uint32_t> Workers::Place(const v1::RegisterWorkerRequest& request) const {
  return ranks_.Place(AskedRank(request), IdentityOf(request));
}

void Workers::Registered(const v1::RegisterWorkerRequest& request, uint32_t rank) {
  commands_.Emit({.name = "worker_registered",
                  .rank = rank,
                  .incarnation = ranks_[rank].incarnation,
                  .message = absl::StrCat("process ", request.pid(), " on ", request.host())});
  // A rank that had left has nothing to do in its new life, so the job does not wait until that
  // life leaves.
  leavers_.erase(rank);
}

bool Workers::Seen(uint32_t rank, Time now) {
  if (ranks_[rank].left() || !ranks_.Seen(rank, now)) return false;
  commands_.Emit({.name = "worker_returned",
                  .rank = rank,
                  .incarnation = ranks_[rank].incarnation,
                  .clock = ranks_[rank].clock});
  return true;
}

void Workers::Leave(const v1::LeaveRequest& request, RankState state, Time now) {
  ranks_.Leave(request.rank(), state, request.clock(), now);
  commands_.Emit({.name = "worker_left",
                  .rank = request.rank(),
                  .incarnation = request.incarnation(),
                  .clock = request.clock(),
                  .state = state == RankState::kLost ? "stopped" : RankStateName(state),
                  .message = Printable(request.message())});
}

void Workers::Lose(uint32_t rank, const std::string& why, Time now) {
  if (ranks_[rank].state != RankState::kLost) {
    ranks_.Leave(rank, RankState::kLost, ranks_[rank].clock, now);
  }
  commands_.Emit({.name = "worker_lost",
                  .rank = rank,
                  .incarnation = ranks_[rank].incarnation,
                  .clock = ranks_[rank].clock,
                  .message = why});
}

void Workers::GoBack(uint64_t clock, uint64_t cut, Time now) {
  ranks_.GoBack(clock, now);
  leavers_.clear();
  progress_.GoBack(clock, cut);
  std::fill(live_.begin(), live_.end(), true);
}

bool Workers::Tell(uint32_t rank, bool live) {
  if (live_[rank] == live) return false;
  live_[rank] = live;
  commands_.Push(SetLive{rank, live});
  return true;
}

void Workers::TellAgain(bool all) {
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (all || !live_[rank]) commands_.Push(SetLive{rank, live_[rank]});
  }
}

void Workers::Fill(Time now, v1::JobStatus& status) const {
  progress_.Fill(now, status);
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    v1::WorkerStatus& worker = *status.mutable_workers(static_cast<int>(i));
    worker.set_rank(i);
    worker.set_incarnation(ranks_[i].state == RankState::kWaiting ? 0 : ranks_[i].incarnation);
    worker.set_state(RankStateName(ranks_[i].state));
    worker.set_clock(ranks_[i].clock);
    worker.set_pid(ranks_[i].life.pid);
    if (ranks_[i].state != RankState::kWaiting) {
      worker.set_seconds_since_heartbeat(Seconds(now - ranks_[i].seen));
    }
  }
}

}  // namespace leeway
