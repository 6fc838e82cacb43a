// Sync mode with committed sets: which ranks' contributions a server holds on all its blocks, and
// when to tell the coordinator. A pure class: no threads, clocks or I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/clock.h"

namespace leeway {

// What the coordinator is told.
struct HeldClock {
  uint64_t clock = 0;
  // The ranks whose contributions are on every block, in rising order.
  std::vector<uint32_t> ranks = {};
  // It was told before, and no set has come.
  bool again = false;
  // In the order of `ranks`: how long they have been held.
  std::vector<Duration> held = {};
  // For the previous clock, which has its set: the ranks whose contributions were refused since and
  // are awaited.
  std::vector<uint32_t> refused = {};
  bool operator==(const HeldClock&) const = default;
};

// Not thread-safe.
class HeldBook {
 public:
  struct Rules {
    uint32_t workers = 1;
    // The number of awaited ranks that a clock can do without.
    uint32_t backup = 0;
    // Whether only live ranks are waited for.
    bool live_only = false;
    // The number of blocks of this server.
    uint32_t blocks = 1;
  };
  explicit HeldBook(const Rules& rules);

  // A block begins at this version. It gets no contributions of earlier clocks. (A server that
  // takes over blocks may get them at different versions.)
  void OnLoaded(uint64_t version);
  // A block has accepted a contribution. To be called once for each rank, clock and block. Returns
  // whether all blocks have the contribution now.
  bool OnAccepted(uint32_t rank, uint64_t clock, Time now = {});
  // A contribution in its clock's set cannot be applied.
  void OnRefused(uint32_t rank, uint64_t clock);
  void OnLive(uint32_t rank, bool live);
  // The clock's set is known, so nothing more needs to be told of this or earlier clocks.
  void OnCommitted(uint64_t clock);

  // What must be told and was not told yet. That is the first open clock, once its set could be
  // complete as far as this server knows, and again with every rank that comes later; and the
  // refused ranks.
  std::optional<HeldClock> Take(Time now = {});
  // The last message did not arrive, or no set has come of it for long. Take() returns it once
  // more.
  void TellAgain();

 private:
  struct Clock {
    // By rank: the number of blocks that hold its contribution.
    std::map<uint32_t, uint32_t> blocks;
    // By rank whose contribution is on every block: since when.
    std::map<uint32_t, Time> whole;
    // Whether there is something to tell, and whether something was told.
    bool changed = false;
    bool told = false;
  };
  bool Enough(const Clock& clock) const;
  // The number of blocks that get a contribution of the clock.
  uint32_t BlocksAt(uint64_t clock) const;

  const Rules rules_;
  std::set<uint32_t> lost_;
  // By version above the open clock: the number of blocks that began there.
  std::map<uint64_t, uint32_t> loaded_;
  // The first clock without a set.
  uint64_t open_ = 0;
  std::map<uint64_t, Clock> clocks_;
  // The refused ranks of the previous clock, and whether some of them must still be told.
  std::set<uint32_t> refused_;
  bool tells_refused_ = false;
};

}  // namespace leeway
