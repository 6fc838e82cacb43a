#include "server/coordinator/core/stop_protocol.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/printable.h"
#include "config/topology.h"

namespace leeway {

void StopProtocol::Request(const std::string& reason) {
  reason_ = reason.empty() ? "somebody asked for it" : Printable(reason);
  commands_.Emit({.name = "stop_requested", .message = reason_});
}

void StopProtocol::EndEarly(const std::string& why) {
  reason_ = why;
  early_ = true;
  commands_.Emit({.name = "early_stop", .clock = early_stop_.clock(), .message = reason_});
}

void StopProtocol::Fail(const std::string& why) {
  if (failed()) return;
  failure_ = why;
  commands_.Emit({.name = "job_failing", .message = why});
}

std::optional<uint64_t> StopProtocol::told() const {
  return aborted_ ? std::optional<uint64_t>(0) : clock_;
}

void StopProtocol::Lower(uint64_t clock) { clock_ = std::min(clock_.value_or(clock), clock); }

absl::StatusOr<uint64_t> StopProtocol::FixFor(const v1::StopAtRequest& asker,
                                              const Membership& ranks, uint64_t job_clocks,
                                              uint64_t every) {
  if (clock_) return *clock_;
  const uint64_t stop = NextMultiple(asker.clock() + 1, every);
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    // A new life counts its predecessor's contribution as completed, so it can be one clock ahead.
    // In gossip other workers can be ahead, too, but not beyond an exchange of the mean.
    if (ranks[i].clock <= (i == asker.rank() ? asker.clock() : stop)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "worker ", asker.rank(), " asks to stop at clock ", asker.clock(), ", but worker ", i,
        " has completed ", Counted(ranks[i].clock, "exchange"), ": the request is out of date"));
  }
  clock_ = std::min(stop, job_clocks);
  commands_.Emit({.name = "stop_fixed", .rank = asker.rank(), .clock = *clock_});
  return *clock_;
}

uint64_t StopProtocol::FixAt(uint64_t clock, bool complete) {
  if (!clock_) {
    clock_ = clock;
    if (!complete) commands_.Emit({.name = "stop_fixed", .clock = clock});
  }
  return *clock_;
}

v1::JobState StopProtocol::Outcome(bool complete, bool any_finished) const {
  if (failed()) return v1::JOB_FAILED;
  if (complete) return v1::JOB_FINISHED;
  if (requested()) return early_ ? v1::JOB_FINISHED : v1::JOB_STOPPED;
  // Nobody asked for a stop: some workers have finished, and others were lost and never came back.
  return any_finished ? v1::JOB_FINISHED : v1::JOB_FAILED;
}

std::string StopProtocol::Ending() const {
  if (failed()) return absl::StrCat("the job has failed: ", failure_);
  if (early_) return absl::StrCat("the job is over: ", reason_);
  if (requested()) return absl::StrCat("the job was stopped: ", reason_);
  return "the job is over";
}

void StopProtocol::Fill(v1::JobState outcome, v1::CoordinatorRecord& record) const {
  record.set_outcome(outcome);
  if (outcome == v1::JOB_FAILED) record.set_message(failure_);
  record.set_permanent(outcome == v1::JOB_FAILED && permanent_);
  if (outcome == v1::JOB_STOPPED) record.set_message(reason_);
  if (outcome == v1::JOB_FINISHED && early_) record.set_message(reason_);
  record.set_stop_reason(recorded_reason());
}

Event StopProtocol::Finished() const {
  Event event{.name = "job_finished", .state = "failed", .message = failure_};
  if (outcome_ == v1::JOB_FINISHED) {
    event.state = "finished";
    event.message = early_ ? reason_ : "";
  }
  if (outcome_ == v1::JOB_STOPPED) {
    event.state = "stopped";
    event.message = reason_;
  }
  return event;
}

}  // namespace leeway
