// Decides what happens to the meetings of one block of a worker's weights (proto:
// EXCHANGE_METHOD_MEET). A pure state machine: no threads, I/O or floats.
//
// The rules:
// - (rank, incarnation, clock) identifies a meeting, which counts once. If it is repeated, it gets
//   the same answer.
// - Only the newest meeting of a rank can be repeated, until the rank says that it has the answer.
// - The core refuses an incarnation if it knows a newer one of the same rank. A newer life begins
//   anew, at any clock.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/core/block_core.h"

namespace leeway {

// Not thread-safe. The caller keeps the answers.
class MeetingCore {
 public:
  enum class Decision {
    // The meeting is new. The caller makes it, and then calls OnMet. If it cannot be made, nothing
    // has changed.
    kMeet,
    // The caller answers with the kept answer of the rank.
    kRepeat,
  };

  // `block` is the number of the block. Only messages use it.
  explicit MeetingCore(uint32_t block) : block_(block) {}

  absl::StatusOr<Decision> OnMeeting(const Sender& sender) const;
  // Records a meeting for which OnMeeting has returned kMeet. The caller keeps its answer in place
  // of the rank's earlier one.
  void OnMet(const Sender& sender);
  // Handles a sender that has the answer of its clock. Returns true if that answer is kept, so that
  // the caller must drop it.
  absl::StatusOr<bool> OnTaken(const Sender& sender);

 private:
  struct Rank {
    uint64_t incarnation = 0;
    // The clock of the newest meeting.
    uint64_t clock = 0;
    bool kept = false;
  };
  // Returns the rank's newest meeting, or null if this life has none. Returns ABORTED if a newer
  // life has one.
  absl::StatusOr<const Rank*> Find(const Sender& sender) const;

  const uint32_t block_;
  // By rank. Ranks that have never met this block have no entry.
  absl::flat_hash_map<uint32_t, Rank> ranks_;
};

}  // namespace leeway
