// Which contributions count in sync clocks that can be complete without every worker. Each clock
// gets one committed set, the same for all shards, once every shard holds enough contributions and
// the slow workers had their grace. Owns the book of held contributions (committed_set_book.h) and
// the grace. The core must tell it what shards hold, when shards change hands, and when to look
// again.
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

  // Every block is at `clock`; shards 0 to `shards` - 1 have blocks.
  void Restart(uint64_t clock, uint32_t shards);
  // Takes a report of what a shard holds of a clock. The caller then calls CommitNext().
  void TakeHeld(const v1::ContributionsHeldRequest& request, uint64_t generation, Time now);
  // Forgets what was held for shards that have changed hands since this epoch. Only the owner holds
  // the contributions of a clock, so the new owner gets them again from the lives that sent them.
  void ForgetHeld(const Placement& places, uint64_t epoch);
  // A shard lacks something of the latest set.
  void MarkLacking() { latest_lacks_ = true; }

  // Makes the next clock's set if that is possible now. `open`: clocks still get sets. `live`, by
  // rank: whether the rank is live.
  void CommitNext(bool open, const std::vector<bool>& live, uint64_t generation, Time now);
  // Until when the next clock waits for slow workers; nullopt if it does not wait.
  std::optional<Time> until() const { return grace_.until(); }
  // Sends the latest set again, for a server that has taken a shard over.
  void CommitAgain(uint64_t generation);
  // The same, for servers that may have missed commands for a while.
  void TellAgain(uint64_t generation) {
    if (book_.latest()) Commit(*book_.latest(), generation);
  }

  // The first clock without a set. Every block is brought to it.
  uint64_t next() const { return book_.next(); }
  // A clock that can never be complete: the latest set names the rank, but some shard will never
  // get that rank's contribution.
  struct Lost {
    uint32_t rank = 0;
    uint64_t clock = 0;
  };
  std::optional<Lost> LostContribution(const Membership& ranks,
                                       const std::vector<bool>& live) const;
  // "clock 17 could do without worker 3 and waits for it, 0.04 s more"; empty if the clock does not
  // wait.
  std::string GraceMessage(const std::vector<bool>& live, Time now) const;

 private:
  void Commit(CommitSet set, uint64_t generation);
  // By rank: whether a complete clock needs its contribution.
  std::vector<bool> Wanted(const std::vector<bool>& live) const;

  const JobFacts& facts_;
  Commands& commands_;
  CommittedSetBook book_;
  // True if a shard may lack something of the latest set: it has changed hands since then, or it
  // has refused a contribution.
  bool latest_lacks_ = false;
  StragglerGrace grace_;
};

}  // namespace leeway
