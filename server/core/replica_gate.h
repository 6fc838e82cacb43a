// Decides when the answers of a block may leave. The replica must first have the state that the
// answers show. A pure class, without threads, clocks or I/O.
//
// The owner sends its replica the block's newest state, one state at a time. The next state
// includes all updates that were made while the last one was in flight. So a slow replica delays
// answers, but no states pile up. A new replica does not delay answers until it has its first
// state. From then on no answer leaves before the replica has the state that the answer shows. The
// replica is synced when it has the states of all answers that have left, including those that left
// before its first state.
#pragma once

#include <cstdint>
#include <optional>

namespace leeway {

// Not thread-safe.
class ReplicaGate {
 public:
  // Begins with a new replica, which has no state yet. It replaces the previous replica.
  void Attach();
  // Ends replication. Without a replica nothing is delayed.
  void Detach();

  // Returns true if the block's `version` must be sent now. If true, that version is then in
  // flight.
  bool TakeSend(uint64_t version);
  // Reports the end of the state in flight: `arrived` is true if the replica has it. `current` is
  // the block's present version.
  void OnSent(bool arrived, uint64_t current);

  // Returns true if an answer may leave that was given when the block was at `version`.
  bool IsOpen(uint64_t version) const { return !gating_ || version < replicated_; }
  // Returns true if the replica lacks the version before `version`: it has no state yet, or other
  // versions were made while its first state was in flight.
  bool NeedsPrevious(uint64_t version) const { return !gating_ || version > replicated_; }
  // Returns true if the replica has the states of all answers that have left.
  bool synced() const { return gating_ && replicated_ > gated_from_; }

 private:
  bool attached_ = false;
  // True if answers wait for the replica.
  bool gating_ = false;
  uint64_t gated_from_ = 0;
  // The replica has the versions below this one.
  uint64_t replicated_ = 0;
  std::optional<uint64_t> under_way_;
};

}  // namespace leeway
