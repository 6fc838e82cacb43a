// Why the job ends, and where: who asked for it, whether it no longer gets better, what failed, and
// the clock at which all stop. Owns these; must be told of every reason, and who asks where to
// stop.
//
// In sync mode the first asker, at clock c, fixes the stop for all at c + 1: nobody can have passed
// that, for exchange c is not complete without the asker. With committed sets all stop at the first
// clock that has none. Otherwise each stops where it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/early_stop.h"
#include "server/coordinator/core/membership.h"

namespace leeway {

// Pure; not thread-safe.
class StopProtocol {
 public:
  explicit StopProtocol(Commands& commands, EarlyStop early_stop = {})
      : commands_(commands), early_stop_(std::move(early_stop)) {}

  // Somebody asks for the job's end; empty: for no reason that is known.
  void Request(const std::string& reason);
  // The job ends as if somebody had asked for it, and has finished: for this reason of
  // early_stop().
  void EndEarly(const std::string& why);
  bool requested() const { return !reason_.empty(); }
  // As it is kept on record: that of an early end follows from the evaluations again.
  std::string recorded_reason() const { return early_ ? "" : reason_; }
  EarlyStop& early_stop() { return early_stop_; }

  // The job fails, with this, which is not empty. The first failure counts.
  void Fail(const std::string& why);
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  // Going on with the job would fail again.
  void MarkPermanent() { permanent_ = true; }
  // Nobody reaches a stop clock any more: everything is broken off.
  void Abort() { aborted_ = true; }
  bool aborted() const { return aborted_; }

  // The clock at which all stop, once there is one. Falls when the job fails, never otherwise
  // moves.
  const std::optional<uint64_t>& clock() const { return clock_; }
  // As workers are told: 0 where everything is broken off.
  std::optional<uint64_t> told() const;
  void Lower(uint64_t clock);
  // Where no clock is complete without everybody: for this asker. FAILED_PRECONDITION: somebody is
  // further than anybody can be if the question is new.
  absl::StatusOr<uint64_t> FixFor(const v1::StopAtRequest& asker, const Membership& ranks,
                                  uint64_t job_clocks);
  // With committed sets: at `clock`, unless that was fixed before. An event says so, unless all is
  // done there (`complete`).
  uint64_t FixAt(uint64_t clock, bool complete);
  bool Reached(uint64_t clock) const { return clock_ && clock >= *clock_; }

  // How the job ends. `complete`: its exchanges are all made; `any_finished`: by somebody at least.
  v1::JobState Outcome(bool complete, bool any_finished) const;
  void Decide(v1::JobState outcome) { outcome_ = outcome; }
  v1::JobState outcome() const { return outcome_; }
  // "the job has failed: ...".
  std::string Ending() const;
  // Of the record that says `outcome`: what is to be said of the end.
  void Fill(v1::JobState outcome, v1::CoordinatorRecord& record) const;
  // job_finished.
  Event Finished() const;

 private:
  Commands& commands_;
  EarlyStop early_stop_;
  std::string reason_;
  // The reason is that of early_stop_.
  bool early_ = false;
  // Not empty: the job fails, with this.
  std::string failure_;
  bool permanent_ = false;
  bool aborted_ = false;
  std::optional<uint64_t> clock_;
  v1::JobState outcome_ = v1::JOB_FAILED;
};

}  // namespace leeway
