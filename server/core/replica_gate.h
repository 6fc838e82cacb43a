// When what a block has answered may leave, where a replica must have it first. Pure: no threads,
// clocks, I/O; versions in, decisions out.
//
// The owner sends its replica the block's newest state, one state at a time: what was applied while
// one was under way goes with the next, so a slow replica makes answers wait and nothing pile up.
// A replica that is new does not hold answers up until it has had its first state; from that moment
// on nothing leaves that it does not have. It is synced when it has everything that left before.
#pragma once

#include <cstdint>
#include <optional>

namespace leeway {

// Not thread-safe.
class ReplicaGate {
 public:
  // A replica that has nothing yet takes the place of what was.
  void Attach();
  // There is none: nothing is held up.
  void Detach();

  // Is the block's `version` to be sent now? It is under way then.
  bool TakeSend(uint64_t version);
  // What was under way has arrived, or has not. `current`: the block's version by now.
  void OnSent(bool arrived, uint64_t current);

  // May an answer leave that was given when the block was at `version`?
  bool IsOpen(uint64_t version) const { return !gating_ || version < replicated_; }
  // The replica has not the version before `version`: it has had no state yet, or its first one was
  // so long under way that others were made meanwhile.
  bool NeedsPrevious(uint64_t version) const { return !gating_ || version > replicated_; }
  // Everything that has left is with the replica.
  bool synced() const { return gating_ && replicated_ > gated_from_; }

 private:
  bool attached_ = false;
  // From then on answers wait.
  bool gating_ = false;
  uint64_t gated_from_ = 0;
  // Versions below it are with the replica.
  uint64_t replicated_ = 0;
  std::optional<uint64_t> under_way_;
};

}  // namespace leeway
