// Decides which contributions count in sync clocks that can be complete without every worker. Each
// clock gets one committed set, the same for all shards, once every shard holds enough
// contributions and the wait for slow workers is over. Owns the book of held contributions
// (committed_set_book.h) and the waits (straggler_grace.h). The core must report here what shards
// hold and when shards change owners, and must call CommitNext when the wait ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/committed_set_book.h"
#include "server/coordinator/core/job_facts.h"
#include "server/coordinator/core/membership.h"
#include "server/coordinator/core/placement.h"
#include "server/coordinator/core/straggler_grace.h"

namespace leeway {

// Pure; not thread-safe.
class CommittedSets {
 public:
  CommittedSets(const JobFacts& facts, Commands& commands);

  // Begins anew, with every block at `clock`. Shards 0 to `shards` - 1 have blocks.
  void Restart(uint64_t clock, uint32_t shards);
  // Records which contributions to a clock a shard holds. The caller then calls CommitNext().
  void TakeHeld(const v1::ContributionsHeldRequest& request, uint64_t generation, Time now);
  // Forgets the contributions of shards that have got a new owner since this epoch. The new owner
  // does not have the old owner's contributions, so the workers send them again.
  void ForgetHeld(const Placement& places, uint64_t epoch);
  // Notes that a shard lacks a contribution that the latest set names.
  void MarkLacking() { latest_lacks_ = true; }

  // Makes the next clock's set if that is possible now. `open` is false if no more clocks get sets.
  // `live` says for each rank whether it is live.
  void CommitNext(bool open, const std::vector<bool>& live, uint64_t generation, Time now);
  // Returns the time until which the next clock waits for slow workers; nullopt if it does not
  // wait.
  std::optional<Time> until() const { return grace_.until(); }
  // Sends the latest set again, for a server that has taken a shard over.
  void CommitAgain(uint64_t generation);
  // Sends the latest set again even if no shard is known to lack one of its contributions, because
  // servers may have missed commands for a while.
  void TellAgain(uint64_t generation) {
    if (book_.latest()) Commit(*book_.latest(), generation);
  }

  // Returns the first clock without a set. The sets so far take every block to that clock.
  uint64_t next() const { return book_.next(); }
  // A clock that can never be complete: the latest set names `rank`, but some shard will never get
  // that rank's contribution.
  struct Lost {
    uint32_t rank = 0;
    uint64_t clock = 0;
  };
  std::optional<Lost> LostContribution(const Membership& ranks,
                                       const std::vector<bool>& live) const;
  // Returns a message such as "clock 17 could do without worker 3 and waits for it, 0.04 s more at
  // most"; empty if the clock does not wait.
  std::string GraceMessage(const std::vector<bool>& live, Time now) const;

 private:
  void Commit(CommitSet set, uint64_t generation);
  // Returns, by rank, true if a clock wants the rank's contribution.
  std::vector<bool> Wanted(const std::vector<bool>& live) const;

  const JobFacts& facts_;
  Commands& commands_;
  CommittedSetBook book_;
  // True if a shard may lack a contribution of the latest set, because the shard has a new owner
  // since then, or has refused a contribution.
  bool latest_lacks_ = false;
  StragglerGrace grace_;
};

}  // namespace leeway
