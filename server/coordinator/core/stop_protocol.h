// Why the job ends, and where: who asked for it, whether it no longer gets better, what failed, and
// the clock at which all workers stop. Owns these. The core must tell it of every reason, and of
// each worker that asks where to stop.
//
// In sync mode the first worker that asks, at clock c, fixes the stop for all at c + 1. No worker
// can have passed that clock, because exchange c is not complete without the asker. With committed
// sets all workers stop at the first clock that has no set. Otherwise each worker stops where it
// is.
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

  // Somebody asks for the job's end. An empty reason means that none is known.
  void Request(const std::string& reason);
  // Ends the job for this reason of early_stop(). It ends like a stopped job, but has finished.
  void EndEarly(const std::string& why);
  bool requested() const { return !reason_.empty(); }
  // The reason for the record; empty for an early end, which follows from the evaluations again.
  std::string recorded_reason() const { return early_ ? "" : reason_; }
  EarlyStop& early_stop() { return early_stop_; }

  // The job fails for this reason, which is not empty. The first failure counts.
  void Fail(const std::string& why);
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  // Restarting the job would make it fail again.
  void MarkPermanent() { permanent_ = true; }
  // Breaks everything off, because no worker can reach a stop clock any more.
  void Abort() { aborted_ = true; }
  bool aborted() const { return aborted_; }

  // The clock at which all workers stop, once there is one. It falls when the job fails, and never
  // moves otherwise.
  const std::optional<uint64_t>& clock() const { return clock_; }
  // The stop clock to tell workers; 0 if everything is broken off.
  std::optional<uint64_t> told() const;
  void Lower(uint64_t clock);
  // Fixes the stop for this asker, where no clock is complete without every worker.
  // FAILED_PRECONDITION: another worker is further than possible, so the question is out of date.
  absl::StatusOr<uint64_t> FixFor(const v1::StopAtRequest& asker, const Membership& ranks,
                                  uint64_t job_clocks);
  // With committed sets: fixes the stop at `clock`, unless it was fixed before. Emits an event,
  // unless the job is complete there (`complete`).
  uint64_t FixAt(uint64_t clock, bool complete);
  bool Reached(uint64_t clock) const { return clock_ && clock >= *clock_; }

  // How the job ends. `complete`: all its exchanges are complete. `any_finished`: at least one
  // worker has finished.
  v1::JobState Outcome(bool complete, bool any_finished) const;
  void Decide(v1::JobState outcome) { outcome_ = outcome; }
  v1::JobState outcome() const { return outcome_; }
  // Such as "the job has failed: ...".
  std::string Ending() const;
  // Fills in what the record with this `outcome` says of the end.
  void Fill(v1::JobState outcome, v1::CoordinatorRecord& record) const;
  // The job_finished event.
  Event Finished() const;

 private:
  Commands& commands_;
  EarlyStop early_stop_;
  std::string reason_;
  // True if reason_ is that of early_stop_.
  bool early_ = false;
  // Why the job fails; empty if it does not.
  std::string failure_;
  bool permanent_ = false;
  bool aborted_ = false;
  std::optional<uint64_t> clock_;
  v1::JobState outcome_ = v1::JOB_FAILED;
};

}  // namespace leeway
