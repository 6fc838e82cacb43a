// What time brings: leases end, and the job goes from one phase to the next.
#include "absl/strings/str_cat.h"
#include "server/coordinator/core/coordinator_core.h"

namespace leeway {

void CoordinatorCore::Tick(Time now) {
  // Nobody could be heard while this process itself stood still (suspended, starved).
  if (life_.Tick(now) > facts().lease() / 2) {
    workers_.Forgive(now);
    fleet_.Forgive(now);
  }
  Wake(now);
  ExpireWorkers(now);
  ExpireServers(now);
  Rebalance(now);
  cuts_.Expire(now, saving());
  Advance(now);
}

void CoordinatorCore::Wake(Time now) {
  if (alarm() && now >= *alarm()) CommitNextSet(now);
}

void CoordinatorCore::ExpireWorkers(Time now) {
  for (const uint32_t rank : workers_.Expire(now)) {
    Lose(rank, absl::StrCat("no sign of life for ", Seconds(facts().lease()), " s"), now);
  }
}

void CoordinatorCore::Lose(uint32_t rank, const std::string& why, Time now) {
  workers_.Lose(rank, why, now);
  leases_.TakeBack(rank);
  TellLive(rank, false, now);
}

void CoordinatorCore::Advance(Time now) {
  if (life_.phase() == Phase::kStarting) AdvanceStart(now);
  if (life_.under_way()) MakeUpForLost(now);
  if (life_.phase() == Phase::kGoingBack) AdvanceGoingBack(now);
  if (life_.phase() == Phase::kRunning && workers_.ranks().Count(RankState::kRunning) == 0 &&
      AllGone(now)) {
    BeginStopping(now);
  }
  if (life_.phase() == Phase::kStopping) AdvanceStopping(now);
  if (life_.phase() == Phase::kSaving) AdvanceSaving(now);
  if (life_.phase() != Phase::kShutdown) return;
  const bool told = fleet_.table().AllShutDown() && !workers_.any_waits();
  if (told || now >= life_.shutdown_until()) life_.Enter(Phase::kOver);
}

}  // namespace leeway
