// Sync clocks that need not be everybody's: which contributions count. Each clock gets one
// committed set, the same for all shards, once every shard holds enough and the slow ones had their
// grace. Owns the book of what is held (committed_set_book.h) and the grace; must be told what
// shards hold, when they change hands, and when to look again.
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

  // Every block is at `clock`; shards 0 up to `shards` have some.
  void Restart(uint64_t clock, uint32_t shards);
  // What a shard holds of a clock. CommitNext() is to follow.
  void TakeHeld(const v1::ContributionsHeldRequest& request, uint64_t generation, Time now);
  // Of the shards that have changed hands since this epoch: what is held for a clock has one
  // holder, and who takes a shard over gets it once more, from the lives that have sent it.
  void ForgetHeld(const Placement& places, uint64_t epoch);
  // A shard has not got all of the latest set.
  void MarkLacking() { latest_lacks_ = true; }

  // Gives the next clock its set, if it can have one now. `open`: clocks get sets still; `live`: by
  // rank, who is.
  void CommitNext(bool open, const std::vector<bool>& live, uint64_t generation, Time now);
  // Until when the next clock waits for the slow ones; nothing if it does not.
  std::optional<Time> until() const { return grace_.until(); }
  // The latest set once more, for who has taken a shard over.
  void CommitAgain(uint64_t generation);
  // The same, for who may have been told nothing for a while.
  void TellAgain(uint64_t generation) {
    if (book_.latest()) Commit(*book_.latest(), generation);
  }

  // The first clock without a set: every block is brought to it.
  uint64_t next() const { return book_.next(); }
  // A clock that can never be completed: a rank that its set, the latest one, names, and whose
  // contribution some shard will never get.
  struct Lost {
    uint32_t rank = 0;
    uint64_t clock = 0;
  };
  std::optional<Lost> LostContribution(const Membership& ranks,
                                       const std::vector<bool>& live) const;
  // "clock 17 could do without worker 3 and waits for it, 0.04 s more"; empty if it does not.
  std::string GraceMessage(const std::vector<bool>& live, Time now) const;

 private:
  void Commit(CommitSet set, uint64_t generation);
  // By rank: a clock is complete with these.
  std::vector<bool> Wanted(const std::vector<bool>& live) const;

  const JobFacts& facts_;
  Commands& commands_;
  CommittedSetBook book_;
  // A shard may lack something of the latest set: it has changed hands since, or has refused a
  // contribution.
  bool latest_lacks_ = false;
  StragglerGrace grace_;
};

}  // namespace leeway
