// Decides why the job ends and at which clock all workers stop. The reason can be a request, an
// early stop or a failure. Owns the reason and the clock. The core must report here every reason,
// and each worker that asks where to stop.
//
// In sync mode the first worker that asks, at clock c, fixes the stop for all at c + 1. No worker
// can have passed that clock, because exchange c needs the contribution of the worker that asks.
// With committed sets all workers stop at the first clock that has no set. Otherwise each worker
// stops where it is. A gossip job stops at the next clock at which the mean is exchanged.
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

  // Records a request to stop the job. An empty reason means that no reason is known.
  void Request(const std::string& reason);
  // Ends the job early for a reason that early_stop() has returned. The job ends like a stopped
  // job, but its state is FINISHED.
  void EndEarly(const std::string& why);
  bool requested() const { return !reason_.empty(); }
  // Returns the reason to record. It is empty for an early end, because a restarted coordinator
  // decides on an early end again from the evaluations.
  std::string recorded_reason() const { return early_ ? "" : reason_; }
  EarlyStop& early_stop() { return early_stop_; }

  // Makes the job fail for this reason, which must not be empty. Only the first failure counts.
  void Fail(const std::string& why);
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  // Notes that the job would fail again if it were restarted.
  void MarkPermanent() { permanent_ = true; }
  // Ends the job without a stop clock, because no worker can reach one any more.
  void Abort() { aborted_ = true; }
  bool aborted() const { return aborted_; }

  // Returns the clock at which all workers stop, once it is fixed. It can be lowered when the job
  // fails, and never changes otherwise.
  const std::optional<uint64_t>& clock() const { return clock_; }
  // Returns the stop clock that workers are told; 0 after Abort().
  std::optional<uint64_t> told() const;
  void Lower(uint64_t clock);
  // Fixes the stop clock for a worker that asks, in a job whose clocks need every worker. Returns
  // FAILED_PRECONDITION if a worker is further than the request allows, because the request is then
  // out of date. The clock is a multiple of `every`, or the job's last one.
  absl::StatusOr<uint64_t> FixFor(const v1::StopAtRequest& asker, const Membership& ranks,
                                  uint64_t job_clocks, uint64_t every);
  // Fixes the stop at `clock`, unless it was fixed before. Emits an event, unless the job is
  // complete at that clock (`complete`). Returns the stop clock.
  uint64_t FixAt(uint64_t clock, bool complete);
  bool Reached(uint64_t clock) const { return clock_ && clock >= *clock_; }

  // Returns how the job ends. `complete` is true if all its exchanges are complete. `any_finished`
  // is true if at least one worker has finished.
  v1::JobState Outcome(bool complete, bool any_finished) const;
  void Decide(v1::JobState outcome) { outcome_ = outcome; }
  v1::JobState outcome() const { return outcome_; }
  // Returns a sentence about the end, such as "the job has failed: " with the reason.
  std::string Ending() const;
  // Fills in the fields of the record that concern the end. `outcome` is the outcome in the record.
  void Fill(v1::JobState outcome, v1::CoordinatorRecord& record) const;
  // Returns the job_finished event.
  Event Finished() const;

 private:
  Commands& commands_;
  EarlyStop early_stop_;
  std::string reason_;
  // True if reason_ comes from early_stop_.
  bool early_ = false;
  // Why the job fails; empty if it does not.
  std::string failure_;
  bool permanent_ = false;
  bool aborted_ = false;
  std::optional<uint64_t> clock_;
  v1::JobState outcome_ = v1::JOB_FAILED;
};

}  // namespace leeway
