// Sync mode with committed sets: whose contributions each clock is made of, one set for all
// servers. A server says whose contributions of a clock it holds on all its blocks; what every
// server holds is, once it is enough, the clock's set (backup workers: Chen et al. 2016,
// arXiv:1604.00981).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "server/coordinator/command.h"

namespace leeway {

// Pure; not thread-safe. Sets come in the order of clocks, one a clock, and a server that has told
// of a clock has the sets of all before: so nobody ever knows of more than one open clock.
class QuorumBook {
 public:
  QuorumBook() = default;

  // Every block is at `clock`; of these servers, which have some.
  void Restart(uint64_t clock, const std::vector<uint32_t>& servers);

  // A server holds these. What is repeated, late or of no server with blocks is ignored.
  void OnHeld(uint32_t server, uint64_t clock, const std::vector<uint32_t>& ranks);

  // The next clock's set: all that every server holds, if only `backup` of the ranks in `wanted`
  // are missing at most, and not all.
  std::optional<CommitSet> Take(const std::vector<bool>& wanted, uint32_t backup);

  // The set that Take() gave last; nothing after a restart.
  const std::optional<CommitSet>& latest() const { return latest_; }
  // The first clock without a set: every block is brought to it.
  uint64_t next() const { return next_; }

 private:
  struct Server {
    uint32_t number = 0;
    std::set<uint32_t> ranks;
  };

  uint64_t next_ = 0;
  std::optional<CommitSet> latest_;
  // Of the clock next_.
  std::vector<Server> servers_;
};

}  // namespace leeway
