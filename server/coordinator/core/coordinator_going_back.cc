// Goes back to the newest complete cut after blocks were lost, and keeps the record of the job's
// state.
#include "absl/strings/str_cat.h"
#include "config/topology.h"
#include "server/coordinator/core/coordinator_core.h"

namespace leeway {

void CoordinatorCore::WriteDown(v1::JobState outcome, bool awaited) {
  commands_.Push(WriteRecord{.record = Record(outcome), .awaited = awaited});
}

v1::CoordinatorRecord CoordinatorCore::Record(v1::JobState outcome) const {
  const CoordinatorOptions& options = facts().options();
  const ServerTable& servers = fleet_.table();
  v1::CoordinatorRecord record;
  record.set_job_id(options.job_id);
  record.set_job_sha256(options.job_sha256);
  record.set_generation(life_.generation());
  record.set_incarnations(record_.incarnations());
  stop_.Fill(outcome, record);
  facts().FillSettled(record);
  record.mutable_devices()->Assign(model_.devices().begin(), model_.devices().end());
  record_.loss_scales().Fill(record);
  *record.mutable_placement() = shards_.places().proto();
  for (uint32_t i = 0; i < servers.size(); ++i) {
    record.add_server_nonces(fleet_.processes()[i].nonce);
  }
  if (servers.wanted() != ServersOf(options.job)) record.set_servers(servers.wanted());
  record.set_steps_per_epoch(life_.began() ? model_.length()->steps_per_epoch()
                                           : facts().StepsBefore());
  record.set_checkpointed(cuts_.newest().has_value());
  record.set_programs_keep_state(facts().programs_keep_state());
  // The coordinator was restarted and has not continued the job yet. So a stop that was requested
  // earlier must stay on record.
  const bool waits = !life_.began() && !stop_.requested() && options.before.has_value();
  if (waits) record.set_stop_reason(options.before->stop_reason());
  return record;
}

v1::CoordinatorRecord CoordinatorCore::RecordOfStop() const {
  if (life_.began() || rollout_.round() > 0) return Record(v1::JOB_STARTING);
  v1::CoordinatorRecord record = *facts().options().before;
  record.set_stop_reason(stop_.recorded_reason());
  return record;
}

void CoordinatorCore::Take(const RecordDone& done, Time now) {
  if (done.status.ok()) record_.Written(done.record);
  if (done.record.outcome() != v1::JOB_STARTING) {
    // The job ends even if its last record could not be written. A restarted coordinator would then
    // wait for workers that are gone, and its status would name them.
    if (record_.Seal()) life_.WaitForShutdown(now + kShutdownLimit);
    return Advance(now);
  }
  if (done.status.ok() || life_.phase() >= Phase::kShutdown) return;
  // No server will be told anything that depends on the record.
  rollout_.ForgetAll();
  const bool going_back = life_.phase() == Phase::kGoingBack;
  Abort(absl::StrCat(going_back ? life_.going_back_why() + "; " : "",
                     "the coordinator's record could not be written: ", done.status.message()),
        now);
  Advance(now);
}

void CoordinatorCore::GoBack(const std::string& why, Time now) {
  if (!life_.began() || life_.phase() >= Phase::kShutdown) return;
  // The job is going back already, and no server has heard of this generation yet.
  if (life_.phase() == Phase::kGoingBack && !rollout_.configuring()) return;
  // A job that fails anyway does not go back.
  if (stop_.failed()) return Abort(stop_.failure(), now);
  life_.GoBack(why, now);
  rollout_.BreakOff();
  rollout_.ForgetAll();
  // The record is written before any process hears of the generation, so that no generation is ever
  // used twice.
  WriteDown(v1::JOB_STARTING);
  commands_.Emit({.name = "going_back", .clock = cuts_.newest(), .message = why});
}

void CoordinatorCore::AdvanceGoingBack(Time now) {
  const Time until = life_.going_back_since() + facts().start_limit();
  // A manifest that is being written decides which cut is the newest.
  const bool settled = !cuts_.book().WritingAny();
  if (settled && fleet_.table().Missing().empty()) {
    if (!rollout_.configuring()) {
      cuts_.GoBack();
      Configure(until, now);
    }
    if (life_.phase() != Phase::kGoingBack) return;
    if (fleet_.table().Unready().empty()) return GoOn(now);
  }
  if (now < until) return;
  Fail(absl::StrCat(life_.going_back_why(), "; ", Missing(now),
                    "; resume the job from its newest checkpoint"),
       now);
}

void CoordinatorCore::GoOn(Time now) {
  const uint64_t clock = cuts_.newest().value_or(0);
  life_.Enter(stop_.requested() ? Phase::kStopping : Phase::kRunning);
  workers_.GoBack(cuts_.CertainClock(), clock, now);
  for (const uint32_t lost : workers_.ranks().In({RankState::kLost})) TellLive(lost, false, now);
  commands_.Emit({.name = "went_back",
                  .clock = clock,
                  .message = absl::StrCat(life_.going_back_why(), "; every server is at clock ",
                                          clock, " now, generation ", life_.generation())});
}

void CoordinatorCore::MakeUpForLost(Time now) {
  const auto lost = sets_.LostContribution(workers_.ranks(), workers_.live());
  if (!lost) return;
  GoBack(absl::StrCat("worker ", lost->rank,
                      " is lost, and a shard lacks or has refused its contribution to clock ",
                      lost->clock),
         now);
}

}  // namespace leeway
