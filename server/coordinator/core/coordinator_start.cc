// Starting: the job waits until all processes are here, and the servers have made their blocks.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"
#include "config/topology.h"
#include "server/coordinator/core/coordinator_core.h"

namespace leeway {

void CoordinatorCore::AdvanceStart(Time now) {
  const ServerTable& servers = fleet_.table();
  const bool servers_here = servers.Missing().empty() && HoldersMissing(now).empty();
  const Time until = life_.created() + facts().start_limit();
  if (EnoughWorkers(now) && servers_here && model_.schema()) {
    ChooseCodec();
    if (!model_.length()) FixLength(now);
    if (life_.phase() != Phase::kStarting) return;
    const bool told = !model_.length() || rollout_.configuring();
    if (!told && TakeUp(now)) return;
    if (!told) Configure(until, now);
    if (life_.phase() == Phase::kStarting && servers.Unready().empty()) Begin(now);
  }
  if (life_.phase() != Phase::kStarting || now < until) return;
  if (!stop_.requested()) return Fail(Missing(now), now);
  BeginStopping(now);
}

// Returns true if the job can begin without further workers. If the job has begun under an earlier
// coordinator, it continues without workers that are silent for a lease, unless the job is in
// lockstep.
bool CoordinatorCore::EnoughWorkers(Time now) const {
  if (workers_.Missing() == 0) return true;
  return facts().StepsBefore() > 0 && !facts().lockstep() &&
         now - life_.created() > facts().lease() && workers_.ranks().Count(RankState::kRunning) > 0;
}

std::vector<uint32_t> CoordinatorCore::HoldersMissing(Time now) const {
  std::vector<uint32_t> missing;
  const bool counts =
      life_.phase() == Phase::kStarting && facts().options().before && OutlivesCoordinator();
  if (!counts || now - life_.created() > facts().lease()) return missing;
  const ServerTable& servers = fleet_.table();
  for (uint32_t i = servers.wanted(); i < servers.size(); ++i) {
    if (shards_.places().Holds(i) && !servers[i].here()) missing.push_back(i);
  }
  return missing;
}

// Call this function once, before a server or a worker is told how to encode anything.
void CoordinatorCore::ChooseCodec() {
  const auto choice = model_.ChooseCodec(fleet_.OnOneHost());
  if (!choice) return;
  commands_.Emit({.name = "codec_chosen",
                  .message = absl::StrCat("auto is ", NameOf(choice->codec), ", ", choice->why)});
}

void CoordinatorCore::FixLength(Time now) {
  const absl::StatusOr<v1::JobLength> length = model_.Measure();
  absl::Status fits = length.status();
  if (fits.ok()) fits = leases_.Open(*length, cuts_.newest().value_or(0));
  if (fits.ok()) fits = facts().CheckStop(*length, leases_.by_batches());
  if (!fits.ok()) return FailForGood(std::string(fits.message()), now);
  model_.Fix(*length);
  cuts_.Expect(model_.ShardsWithBlocks(), facts().keeps_state());
}

bool CoordinatorCore::OutlivesCoordinator() const {
  return facts().replicated() || FirstHolderOf(facts().job()) > 0;
}

bool CoordinatorCore::TakeUp(Time now) {
  const CoordinatorOptions& options = facts().options();
  // With leased data, nobody knows which batches were done since the newest cut.
  if (leases_.open()) return false;
  // Some servers have already heard of another generation.
  if (rollout_.round() > 0) return false;
  const bool state_lost = facts().sync() && model_.cut_every() > 0 && facts().keeps_state();
  // With committed sets, some shards may have received the set of a clock that other shards have
  // not received.
  if (!options.before || !OutlivesCoordinator() || life_.began() || state_lost ||
      facts().commits_sets()) {
    return false;
  }
  if (!shards_.TakeUp()) return false;
  life_.TakeUp(options.before->generation());
  Begin(now, /*goes_on=*/true);
  Reassign("the coordinator was started again", now);
  return true;
}

void CoordinatorCore::Configure(Time deadline, Time now) {
  if (const absl::Status restored = leases_.Restore(cuts_.newest().value_or(0)); !restored.ok()) {
    return FailForGood(std::string(restored.message()), now);
  }
  stop_.early_stop().GoBack(cuts_.newest().value_or(0));
  RemoveIdle();
  shards_.Reset();
  const v1::ConfigureRequest request = Configuration(true);
  // The record is written before any server acts on the new configuration, so that no generation is
  // used twice and no old replica counts as synced.
  WriteDown(v1::JOB_STARTING);
  fleet_.MarkAllUnready();
  sets_.Restart(cuts_.CertainClock(), model_.ShardsWithBlocks());
  rollout_.Configure(request, fleet_.table(), deadline);
}

void CoordinatorCore::Begin(Time now, bool goes_on) {
  const CoordinatorOptions& options = facts().options();
  life_.Begin(now);
  shards_.GoOnResizing();
  workers_.groups().Form();
  workers_.Forgive(now);
  const uint64_t clock = options.resumed ? options.resumed->manifest.clock() : 0;
  const Membership& ranks = workers_.ranks();
  const v1::JobLength& length = *model_.length();
  const std::string where =
      goes_on ? "goes on where it is, to clock "
              : absl::StrCat(options.resumed ? "resumed at clock " : "from clock ", clock, " of ");
  commands_.Emit(
      {.name = "job_started",
       .clock = goes_on ? std::nullopt : std::optional(clock),
       .message = absl::StrCat(where, length.clocks(), ", ", model_.schema()->total(),
                               " parameters, ", Counted(fleet_.table().wanted(), "server"), ", ",
                               Counted(ranks.size(), "worker")),
       .shape = ClockShape{.workers = ranks.size(),
                           .steps_per_clock = length.steps_per_clock(),
                           .sync = facts().sync()},
       .goes_on = goes_on});
  // The record is written before any worker is answered.
  WriteDown(v1::JOB_STARTING);
  for (const uint32_t rank : ranks.In({RankState::kWaiting, RankState::kLost})) {
    Lose(rank, "it has not come back since the coordinator was started again", now);
  }
  // When the stop was requested, the servers had not registered yet, so the job could not be
  // stopped.
  if (stop_.requested()) return BeginStopping(now);
  if (options.before && !options.before->stop_reason().empty()) {
    StopJob(options.before->stop_reason(), now);
  }
  EndEarlyIfDue(now);
}

}  // namespace leeway
