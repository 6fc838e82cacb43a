// Stopping, the last cut, and the end of the job.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/coordinator/core/coordinator_core.h"

namespace leeway {

void CoordinatorCore::StopJob(const std::string& reason, Time now) {
  if (life_.phase() >= Phase::kStopping || stop_.requested()) return;
  stop_.Request(reason);
  const bool begun = life_.began() || facts().StepsBefore() > 0;
  // The stop need not wait for this record, because it is correct without the record.
  if (begun) commands_.Push(WriteRecord{.record = RecordOfStop(), .awaited = false});
  // Only a running job can be stopped in order. A restarted coordinator first continues the job and
  // then stops it, because servers hold blocks that must be saved.
  if (life_.phase() != Phase::kGoingBack && (life_.began() || !begun)) BeginStopping(now);
}

// In lockstep all workers stop one clock after the evaluation. The evaluating worker waits for the
// answer, and no other worker can pass that clock without this worker's contribution. So the job
// ends at the same clock in every run, even if workers are killed.
void CoordinatorCore::EndEarlyIfDue(Time now) {
  if (life_.phase() != Phase::kRunning || stop_.requested()) return;
  const std::optional<std::string> why = stop_.early_stop().Why();
  if (!why) return;
  stop_.EndEarly(*why);
  if (facts().lockstep()) {
    // A resumed run may be beyond that clock already.
    const uint64_t clock = std::max(stop_.early_stop().clock() + 1, LastClock());
    stop_.FixAt(std::min(clock, model_.length()->clocks()), false);
  }
  BeginStopping(now);
}

void CoordinatorCore::Fail(const std::string& why, Time now) {
  if (life_.phase() >= Phase::kShutdown || stop_.failed()) return;
  // Without all servers no worker can make progress.
  if (life_.phase() == Phase::kGoingBack) stop_.Abort();
  stop_.Fail(why);
  if (life_.phase() < Phase::kStopping) BeginStopping(now);
}

void CoordinatorCore::FailForGood(const std::string& why, Time now) {
  if (life_.phase() < Phase::kShutdown && !stop_.failed()) stop_.MarkPermanent();
  Fail(why, now);
}

void CoordinatorCore::Abort(const std::string& why, Time now) {
  stop_.Abort();
  Fail(why, now);
}

void CoordinatorCore::BeginStopping(Time now) {
  life_.Enter(Phase::kStopping);
  if (facts().commits_sets() && life_.began()) FixStopHere();
  AdvanceStopping(now);
}

// Returns true if nothing depends on this rank any more.
bool CoordinatorCore::Gone(uint32_t number, Time now) const {
  const Membership& ranks = workers_.ranks();
  const Rank& rank = ranks[number];
  if (rank.left() || rank.state == RankState::kWaiting || !life_.began()) return true;
  if (rank.state != RankState::kLost) return false;
  const bool needed = life_.phase() == Phase::kRunning || facts().lockstep();
  if (stop_.aborted() || !needed) return true;
  // All exchanges are complete without this rank.
  if (facts().commits_sets() && Complete()) return true;
  const bool continues = facts().job().workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE;
  const bool others_done = ranks.Count(RankState::kRunning) == 0 && AnyFinished();
  if (continues && others_done) return true;
  if (stop_.Reached(rank.clock) && cuts_.HasState(number, *stop_.clock())) return true;
  return now - rank.since > facts().start_limit();
}

bool CoordinatorCore::AllGone(Time now) const {
  for (uint32_t i = 0; i < workers_.ranks().size(); ++i) {
    if (!Gone(i, now)) return false;
  }
  return true;
}

// In lockstep the other workers cannot reach the stop clock without a lost rank's contributions. So
// the other workers are told to stop where they are.
void CoordinatorCore::GiveUpLost(Time now) {
  if (!facts().lockstep() || !life_.began() || stop_.aborted()) return;
  const Membership& ranks = workers_.ranks();
  for (const uint32_t rank : ranks.In({RankState::kLost})) {
    const uint64_t clock = ranks[rank].clock;
    if (!Gone(rank, now) || stop_.Reached(clock) || ranks.Count(RankState::kRunning) == 0) continue;
    // The other workers have been blocked for long, so all of them are at the clock of the slowest
    // worker.
    for (const uint32_t blocked : ranks.In({RankState::kRunning}))
      stop_.Lower(ranks[blocked].clock);
    Fail(absl::StrCat("worker ", rank, " was lost at clock ", clock,
                      " while the job was stopping, and did not come back within ",
                      Seconds(facts().start_limit()), " s"),
         now);
  }
}

void CoordinatorCore::AdvanceStopping(Time now) {
  GiveUpLost(now);
  if (!AllGone(now)) return;
  // While a shard moves between two servers, neither server could write the shard's part of the
  // cut.
  if (rollout_.waits()) return;
  stop_.Decide(Outcome());
  if (!stop_.failed() && stop_.outcome() == v1::JOB_FAILED) {
    Fail(absl::StrCat("all workers were lost; the last was at clock ", LastClock()), now);
  }
  BeginSaving(now);
}

bool CoordinatorCore::Complete() const {
  if (!model_.length()) return false;
  const v1::JobLength& length = *model_.length();
  if (facts().commits_sets()) return sets_.next() >= length.clocks();
  if (leases_.by_batches()) return leases_.over();
  const Membership& ranks = workers_.ranks();
  uint64_t sum = 0;
  uint64_t low = UINT64_MAX;
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    sum += ranks[i].clock;
    low = std::min(low, ranks[i].clock);
  }
  return length.total_clocks() > 0 ? sum >= length.total_clocks() : low >= length.clocks();
}

v1::JobState CoordinatorCore::Outcome() const { return stop_.Outcome(Complete(), AnyFinished()); }

// A worker that has nothing to do finishes at once, so its end does not show that the job has
// finished.
bool CoordinatorCore::AnyFinished() const {
  const std::vector<uint32_t> finished = workers_.ranks().In({RankState::kFinished});
  return std::any_of(finished.begin(), finished.end(),
                     [this](uint32_t rank) { return !model_.IsIdle(rank); });
}

// In sync mode all blocks are at the clock of the worker that is furthest. Otherwise a cut's clock
// is the workers' mean clock, as the servers compute it. The last cut gets a later clock than all
// other cuts, because its blocks may differ from the blocks in those cuts.
uint64_t CoordinatorCore::LastClock() const {
  if (facts().commits_sets()) return sets_.next();
  const Membership& ranks = workers_.ranks();
  uint64_t sum = 0;
  uint64_t high = 0;
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    sum += ranks[i].clock;
    high = std::max(high, ranks[i].clock);
  }
  // A rank's clock can be beyond the stop clock: if a worker was killed, its next life counts the
  // last contribution as completed.
  if (facts().sync()) return std::min(stop_.clock().value_or(high), high);
  const uint64_t mean = sum / ranks.size();
  const std::optional<uint64_t> latest = cuts_.book().latest();
  return latest && *latest >= mean ? *latest + 1 : mean;
}

void CoordinatorCore::BeginSaving(Time now) {
  cuts_.SetLast(LastClock());
  const Membership& ranks = workers_.ranks();
  bool anything = false;
  for (uint32_t i = 0; i < ranks.size(); ++i) anything |= ranks[i].clock > 0;
  const bool saved = facts().sync() && cuts_.HaveLast();
  if (!life_.began() || stop_.aborted() || !anything || saved) return BeginShutdown(now);
  life_.Enter(Phase::kSaving);
  cuts_.BeginLast(life_.generation(), now);
  WriteWholeCut();
}

void CoordinatorCore::AdvanceSaving(Time now) {
  if (cuts_.HaveLast()) return BeginShutdown(now);
  const auto failed = cuts_.LastFailed(stop_.aborted(), now);
  if (!failed) return;
  Fail(*failed, now);
  BeginShutdown(now);
}

void CoordinatorCore::BeginShutdown(Time now) {
  stop_.Decide(Outcome());
  life_.Enter(Phase::kShutdown);
  // This limit covers the writing of the record. Once the record is durable, a new limit is set.
  life_.WaitForShutdown(now + facts().start_limit() + kShutdownLimit);
  WriteDown(stop_.outcome());
  // These workers wait for the start, and must be told that the job does not start.
  for (const uint32_t rank : workers_.ranks().In({RankState::kRunning})) {
    if (!life_.began()) workers_.WaitForEnd(rank);
  }
  Event event = stop_.Finished();
  event.clock = cuts_.newest();
  commands_.Emit(std::move(event));
  commands_.Push(ShutdownServers{kShutdownLimit, stop_.outcome()});
}

}  // namespace leeway
