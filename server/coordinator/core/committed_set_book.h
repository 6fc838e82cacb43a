// In sync mode with committed sets, decides which contributions make each clock. All shards use the
// same set. Each shard reports which contributions of a clock it holds on all its blocks. Once
// enough contributions are held by every shard, these become the clock's set (backup workers: Chen
// et al. 2016, arXiv:1604.00981).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "server/coordinator/core/command.h"

namespace leeway {

// Pure; not thread-safe. Sets are made in the order of clocks, one for each clock. A shard that
// reports on a clock has the sets of all earlier clocks. So only one clock is ever open.
class CommittedSetBook {
 public:
  CommittedSetBook() = default;

  // Begins anew, with every block at `clock`. `shards` are the shards that have blocks.
  void Restart(uint64_t clock, const std::vector<uint32_t>& shards);

  // Records that a shard holds the contributions of `ranks`, and that the contribution of ranks[i]
  // came at since[i]. A contribution without an entry in `since` counts as earlier than all others.
  // Ignores repeated reports, late reports, and reports of a shard without blocks.
  void OnHeld(uint32_t shard, uint64_t clock, const std::vector<uint32_t>& ranks,
              const std::vector<Time>& since = {});

  // Forgets the shard's contributions, because the shard has moved without them. Its new owner
  // reports anew.
  void Forget(uint32_t shard);

  // Makes the next clock's set from the contributions that every shard holds. Returns nullopt if
  // more than `backup` of the ranks in `wanted` are missing, or if all of them are missing. A
  // caller that wants to give missing ranks more time calls Enough() and Missing() first.
  std::optional<CommitSet> Take(const std::vector<bool>& wanted, uint32_t backup);

  // Three questions about the next clock. Enough returns true if Take() would return its set.
  // Missing returns the ranks in `wanted` whose contributions some shard lacks. Arrivals returns,
  // for each contribution that every shard has, the time at which the last shard received it.
  bool Enough(const std::vector<bool>& wanted, uint32_t backup) const;
  std::vector<uint32_t> Missing(const std::vector<bool>& wanted) const;
  std::vector<Time> Arrivals() const;
  // Returns the number of contributions to the next clock that every shard holds.
  size_t came() const { return whole_.size(); }

  // The set that Take() returned last; nullopt after a restart.
  const std::optional<CommitSet>& latest() const { return latest_; }
  // Returns the first clock without a set. The sets so far take every block to that clock.
  uint64_t next() const { return next_; }

 private:
  struct Shard {
    uint32_t number = 0;
    // When the shard received each rank's contribution.
    std::map<uint32_t, Time> ranks;
  };
  // Returns the time at which the last shard received the rank's contribution; nullopt while a
  // shard lacks it.
  std::optional<Time> Everywhere(uint32_t rank) const;

  uint64_t next_ = 0;
  std::optional<CommitSet> latest_;
  // The contributions to clock next_ that each shard holds.
  std::vector<Shard> shards_;
  // The ranks whose contributions every shard holds, with the time when the last shard received
  // each.
  std::map<uint32_t, Time> whole_;
};

}  // namespace leeway
