// Sync mode with committed sets: whose contributions each clock is made of, one set for all
// shards. Of each is said whose contributions of a clock it holds on all its blocks; what every
// shard holds is, once it is enough, the clock's set (backup workers: Chen et al. 2016,
// arXiv:1604.00981).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "server/coordinator/core/command.h"

namespace leeway {

// Pure; not thread-safe. Sets come in the order of clocks, one a clock, and a shard that has told
// of a clock has the sets of all before: so nobody ever knows of more than one open clock.
class CommittedSetBook {
 public:
  CommittedSetBook() = default;

  // Every block is at `clock`; of these shards, which have some.
  void Restart(uint64_t clock, const std::vector<uint32_t>& shards);

  // A shard holds these, since `since` (by place; what is missing there came at some time before
  // all others). What is repeated, late or of no shard with blocks is ignored.
  void OnHeld(uint32_t shard, uint64_t clock, const std::vector<uint32_t>& ranks,
              const std::vector<Time>& since = {});

  // The shard is elsewhere now, without what was held for it; who has it tells anew.
  void Forget(uint32_t shard);

  // The next clock's set: all that every shard holds, if only `backup` of the ranks in `wanted`
  // are missing at most, and not all. Whoever wants to give the missing ones more time asks for
  // them first.
  std::optional<CommitSet> Take(const std::vector<bool>& wanted, uint32_t backup);

  // Of the next clock: whether Take() would give its set; who of `wanted` is missing; and when
  // those who are not had come to every shard.
  bool Enough(const std::vector<bool>& wanted, uint32_t backup) const;
  std::vector<uint32_t> Missing(const std::vector<bool>& wanted) const;
  std::vector<Time> Arrivals() const;
  // How many have come to every shard.
  size_t came() const { return whole_.size(); }

  // The set that Take() gave last; nothing after a restart.
  const std::optional<CommitSet>& latest() const { return latest_; }
  // The first clock without a set: every block is brought to it.
  uint64_t next() const { return next_; }

 private:
  struct Shard {
    uint32_t number = 0;
    // Since when it holds them.
    std::map<uint32_t, Time> ranks;
  };
  // When the last shard came to hold what the rank sent; nothing while one does not.
  std::optional<Time> Everywhere(uint32_t rank) const;

  uint64_t next_ = 0;
  std::optional<CommitSet> latest_;
  // Of the clock next_.
  std::vector<Shard> shards_;
  // Those that every shard holds.
  std::map<uint32_t, Time> whole_;
};

}  // namespace leeway
