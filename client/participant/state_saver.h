// For the job's checkpoints, saves the state that a worker keeps between clocks. Loads the state
// when the job resumes.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "client/participant/clock_exchange.h"
#include "client/session/coordinator_session.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The referenced objects outlive it. Not thread-safe.
class StateSaver {
 public:
  StateSaver(const v1::RegisterWorkerReply& registration, CoordinatorSession& session)
      : registration_(registration), session_(session), keeps_(registration.save_state()) {}

  // Makes the worker keep state even if its exchange keeps none. This begins once the coordinator
  // has heard of it. For external jobs.
  void Want() { wanted_ = true; }
  bool is_to_tell() const { return wanted_ && !keeps_; }
  absl::Status Tell(uint64_t clock);
  // Returns true if the worker keeps state between clocks, so that checkpoints need it.
  bool keeps() const { return keeps_; }

  // Notes that the worker goes on at `clock`. The state of that clock is already in its checkpoint.
  void GoOnAt(uint64_t clock) { cut_ = clock; }
  // Notes that the exchange has read the weights, so that it has a state of its clock.
  void Begun() { has_state_ = true; }
  // Returns true if the exchange has read the weights or loaded a state.
  bool has_state() const { return has_state_; }
  // In a resumed job, loads the state with which the worker goes on at `clock`.
  absl::Status Load(uint64_t clock, ClockExchange& exchange);

  // Returns true if the job's next checkpoint needs the state of `clock`.
  bool IsCutDue(uint64_t clock) const;
  // Saves the state for the checkpoint at `clock`. Of all errors, returns only ABORTED: any other
  // failure costs just one checkpoint, and training can go on.
  absl::Status SaveForCut(uint64_t clock, const ClockExchange& exchange);
  // Saves the state, at most once in a clock. Saves an empty state if the worker has not begun its
  // first clock. Saves nothing if that clock is not known yet.
  absl::Status Save(uint64_t clock, const ClockExchange& exchange);

 private:
  const v1::RegisterWorkerReply& registration_;
  CoordinatorSession& session_;
  bool keeps_;
  bool wanted_ = false;
  // A worker that is stopped before it has a state saves an empty one, and a worker that resumes
  // from an empty state starts afresh.
  bool has_state_ = false;
  // The newest clock whose cut needs nothing more from this worker. Absent until the servers have
  // answered at which clock the worker goes on.
  std::optional<uint64_t> cut_;
  // The clock at which the state was last saved.
  std::optional<uint64_t> saved_at_;
};

}  // namespace leeway
