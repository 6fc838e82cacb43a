// Handles the passing of time: leases end, and the job goes from one phase to the next.
#include "absl/strings/str_cat.h"
#include "server/coordinator/core/coordinator_core.h"

namespace leeway {

void CoordinatorCore::Tick(Time now) {
  Doubt(now);
  Wake(now);
  ExpireWorkers(now);
  ExpireServers(now);
  GiveUpHolders(now);
  Rebalance(now);
  cuts_.Expire(now, saving());
  if (saving() && cuts_.TakeAskLater()) {
    sets_.CommitAgain(life_.generation());
    cuts_.AskAgain(life_.generation(), now);
  }
  Advance(now);
}

void CoordinatorCore::Doubt(Time now) {
  Silence silence;
  workers_.ranks().CountSilent(now, silence);
  fleet_.table().CountSilent(now, silence);
  const auto verdict = life_.hearing().Tick(silence, facts().lease(), now);
  if (verdict == Hearing::Verdict::kHears) return;
  workers_.Forgive(now);
  fleet_.Forgive(now);
  if (verdict == Hearing::Verdict::kStoodStill) return;
  commands_.Emit({.name = "leases_extended",
                  .message = absl::StrCat(
                      silence.half, " of ", silence.held,
                      " processes fell silent together: the cause may be the coordinator itself, "
                      "so each has one more lease of ",
                      Seconds(facts().lease()), " s")});
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
