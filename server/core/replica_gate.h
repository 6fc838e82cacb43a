// Decides when the answers of a block may leave, if a replica must have their state first. A pure
// class: no threads, clocks or I/O. Versions go in and decisions come out.
//
// The owner sends its replica the block's newest state, one state at a time. Updates that are made
// while a state is in flight go with the next one. So a slow replica delays answers, but no states
// pile up. A new replica does not delay answers until it has its first state. From then on no
// answer leaves before the replica has its state. The replica is synced when it also has everything
// that left before.
#pragma once

#include <cstdint>
#include <optional>

namespace leeway {

// Not thread-safe.
class ReplicaGate {
 public:
  // A new replica, which has nothing yet, replaces the previous one.
  void Attach();
  // The shard has no replica, so nothing is delayed.
  void Detach();

  // Whether the block's `version` must be sent now. If so, it is in flight.
  bool TakeSend(uint64_t version);
  // The state in flight has arrived or failed. `current` is the block's version by now.
  void OnSent(bool arrived, uint64_t current);

  // Whether an answer that was given at the block's `version` may leave.
  bool IsOpen(uint64_t version) const { return !gating_ || version < replicated_; }
  // Whether the replica lacks the version before `version`. Either it has no state yet, or other
  // versions were made while its first one was in flight.
  bool NeedsPrevious(uint64_t version) const { return !gating_ || version > replicated_; }
  // Whether the replica has everything that has left.
  bool synced() const { return gating_ && replicated_ > gated_from_; }

 private:
  bool attached_ = false;
  // Whether answers wait for the replica.
  bool gating_ = false;
  uint64_t gated_from_ = 0;
  // The replica has the versions below this one.
  uint64_t replicated_ = 0;
  std::optional<uint64_t> under_way_;
};

}  // namespace leeway
