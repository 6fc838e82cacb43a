// Back to the newest complete cut, after blocks were lost.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/phrases.h"

namespace leeway {

uint64_t CoordinatorCore::CutClock() const { return sync() ? cuts_.newest().value_or(0) : 0; }

v1::CoordinatorRecord CoordinatorCore::Record(v1::JobState outcome) const {
  v1::CoordinatorRecord record;
  record.set_job_id(options_.job_id);
  record.set_job_sha256(options_.job_sha256);
  record.set_generation(generation_);
  record.set_outcome(outcome);
  if (outcome == v1::JOB_FAILED) record.set_message(failure_);
  if (outcome == v1::JOB_STOPPED) record.set_message(stop_reason_);
  if (options_.auto_codec) *record.mutable_auto_codec() = *options_.auto_codec;
  *record.mutable_placement() = placement_.proto();
  for (uint32_t i = 0; i < servers_.size(); ++i) record.add_server_nonces(servers_[i].nonce);
  if (servers_.wanted() != options_.job.servers().count()) record.set_servers(servers_.wanted());
  record.set_steps_per_epoch(began_ ? length_->steps_per_epoch() : StepsBefore());
  record.set_stop_reason(stop_reason_);
  // Not taken up yet.
  const bool waits = !began_ && stop_reason_.empty() && options_.before.has_value();
  if (waits) record.set_stop_reason(options_.before->stop_reason());
  return record;
}

v1::CoordinatorRecord CoordinatorCore::RecordOfStop() const {
  if (began_ || round_ > 0) return Record(v1::JOB_STARTING);
  v1::CoordinatorRecord record = *options_.before;
  record.set_stop_reason(stop_reason_);
  return record;
}

void CoordinatorCore::GoBack(const std::string& why, Time now) {
  if (!began_ || phase_ >= Phase::kShutdown) return;
  // On the way already, and no server has heard of this generation yet.
  if (phase_ == Phase::kGoingBack && !configuring_) return;
  // A job that fails anyway is not begun again.
  if (!failure_.empty()) return Abort(failure_, now);
  phase_ = Phase::kGoingBack;
  going_back_since_ = now;
  going_back_why_ = why;
  configuring_ = false;
  first_.clear();
  ++generation_;
  // Before anybody hears of the generation: it is never used twice.
  commands_.push_back(WriteRecord{Record(v1::JOB_STARTING)});
  Emit({.name = "going_back", .clock = cuts_.newest(), .message = why});
}

void CoordinatorCore::RecordDone(const v1::CoordinatorRecord& record, const absl::Status& status,
                                 Time now) {
  if (status.ok()) {
    recorded_begun_ |= record.steps_per_epoch() > 0;
    recorded_ = std::max(recorded_, std::pair(record.generation(), record.placement().epoch()));
  }
  if (record.outcome() != v1::JOB_STARTING) {
    // Without it a restarted coordinator would look for workers that are gone, and say so.
    if (!std::exchange(sealed_, true)) deadline_ = now + kShutdownLimit;
    return Advance(now);
  }
  if (status.ok() || phase_ >= Phase::kShutdown) return;
  // No server will hear of what was to follow.
  first_.clear();
  const std::string why = phase_ == Phase::kGoingBack ? going_back_why_ + "; " : "";
  Abort(absl::StrCat(why, "the coordinator's record could not be written: ", status.message()),
        now);
  Advance(now);
}

void CoordinatorCore::AdvanceGoingBack(Time now) {
  // Its manifest decides what the newest cut is.
  const bool settled = !cuts_.WritingAny();
  if (settled && servers_.Missing().empty()) {
    if (!configuring_) {
      cuts_.GoBack();
      Configure(going_back_since_ + start_limit(), now);
    }
    if (phase_ != Phase::kGoingBack) return;
    if (servers_.Unready().empty()) return GoOn(now);
  }
  if (now - going_back_since_ < start_limit()) return;
  Fail(absl::StrCat(going_back_why_, "; ", Missing(now),
                    "; resume the job from its newest checkpoint"),
       now);
}

void CoordinatorCore::GoOn(Time now) {
  const uint64_t clock = cuts_.newest().value_or(0);
  phase_ = stop_reason_.empty() ? Phase::kRunning : Phase::kStopping;
  ranks_.GoBack(CutClock(), now);
  waiting_leavers_.clear();
  // Outside of sync a rank's own clock may have been behind the cut's, which is a mean.
  for (RankProgress& progress : progress_) progress.GoBack(CutClock());
  std::erase_if(evaluations_, [clock](const auto& each) { return each.clock() > clock; });
  // The new blocks hold everybody up for everybody.
  std::fill(live_.begin(), live_.end(), true);
  for (const uint32_t lost : ranks_.In({RankState::kLost})) TellLive(lost, false, now);
  Emit({.name = "went_back",
        .clock = clock,
        .message = absl::StrCat(going_back_why_, "; every server is at clock ", clock,
                                " now, generation ", generation_)});
}

}  // namespace leeway
