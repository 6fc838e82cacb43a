// When the answers of a block may leave, if a replica must have their state first. Pure: no
// threads, clocks, I/O; versions in, decisions out.
//
// The owner sends its replica the block's newest state, one state at a time. Updates made while a
// state is in flight go with the next one. So a slow replica delays answers, and nothing piles up.
// A new replica does not hold up answers until it has had its first state. From that moment on no
// answer leaves whose state it does not have. It is synced when it has everything that left before.
#pragma once

#include <cstdint>
#include <optional>

namespace leeway {

// Not thread-safe.
class ReplicaGate {
 public:
  // A new replica, which has nothing yet, replaces the previous one.
  void Attach();
  // There is no replica, so nothing is held up.
  void Detach();

  // Must the block's `version` be sent now? If so, it is in flight.
  bool TakeSend(uint64_t version);
  // The state in flight has arrived, or has not. `current`: the block's version by now.
  void OnSent(bool arrived, uint64_t current);

  // May an answer that was given at the block's `version` leave?
  bool IsOpen(uint64_t version) const { return !gating_ || version < replicated_; }
  // True if the replica does not have the version before `version`: it has had no state yet, or its
  // first one was in flight for so long that others were made meanwhile.
  bool NeedsPrevious(uint64_t version) const { return !gating_ || version > replicated_; }
  // True if the replica has everything that has left.
  bool synced() const { return gating_ && replicated_ > gated_from_; }

 private:
  bool attached_ = false;
  // Answers wait from then on.
  bool gating_ = false;
  uint64_t gated_from_ = 0;
  // The replica has the versions below this one.
  uint64_t replicated_ = 0;
  std::optional<uint64_t> under_way_;
};

}  // namespace leeway
