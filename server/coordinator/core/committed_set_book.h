// Sync mode with committed sets: which contributions make each clock. All shards use the same set.
// Each shard reports which contributions of a clock it holds on all its blocks. Once enough
// contributions are held by every shard, these become the clock's set (backup workers: Chen et al.
// 2016, arXiv:1604.00981).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "server/coordinator/core/command.h"

namespace leeway {

// Pure; not thread-safe. Sets are made in the order of clocks, one for each clock. A shard that
// reports on a clock has the sets of all clocks before. So only one clock is ever open.
class CommittedSetBook {
 public:
  CommittedSetBook() = default;

  // Every block is at `clock`. `shards` are the shards that have blocks.
  void Restart(uint64_t clock, const std::vector<uint32_t>& shards);

  // A shard holds the contributions of `ranks`, and has held ranks[i] since since[i]. Contributions
  // without an entry in `since` count as earlier than all others. Repeated reports, late reports,
  // and reports of a shard without blocks are ignored.
  void OnHeld(uint32_t shard, uint64_t clock, const std::vector<uint32_t>& ranks,
              const std::vector<Time>& since = {});

  // The shard has moved, without the contributions held for it. Its new owner reports anew.
  void Forget(uint32_t shard);

  // Makes the next clock's set from the contributions that every shard holds. Returns nullopt if
  // more than `backup` of the ranks in `wanted` are missing, or all of them. A caller that wants to
  // give missing ranks more time calls Enough() and Missing() first.
  std::optional<CommitSet> Take(const std::vector<bool>& wanted, uint32_t backup);

  // The next clock: whether Take() would return its set, which ranks of `wanted` are missing, and
  // when the contributions of the other ranks had arrived at every shard.
  bool Enough(const std::vector<bool>& wanted, uint32_t backup) const;
  std::vector<uint32_t> Missing(const std::vector<bool>& wanted) const;
  std::vector<Time> Arrivals() const;
  // The number of contributions that every shard holds.
  size_t came() const { return whole_.size(); }

  // The set that Take() returned last; nullopt after a restart.
  const std::optional<CommitSet>& latest() const { return latest_; }
  // The first clock without a set. Every block is brought to it.
  uint64_t next() const { return next_; }

 private:
  struct Shard {
    uint32_t number = 0;
    // By rank: since when the shard holds its contribution.
    std::map<uint32_t, Time> ranks;
  };
  // When the last shard received the rank's contribution; nullopt while a shard lacks it.
  std::optional<Time> Everywhere(uint32_t rank) const;

  uint64_t next_ = 0;
  std::optional<CommitSet> latest_;
  // What each shard holds of clock next_.
  std::vector<Shard> shards_;
  // By rank: the contributions that every shard holds, and since when.
  std::map<uint32_t, Time> whole_;
};

}  // namespace leeway
