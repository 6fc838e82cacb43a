// Sync mode with committed sets: which ranks' contributions a server holds on all its blocks, and
// when to tell the coordinator. Pure: no threads, clocks, I/O.
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
  // Whole on every block; rising.
  std::vector<uint32_t> ranks = {};
  // Told before, and no set has come.
  bool again = false;
  // In the order of `ranks`: for how long.
  std::vector<Duration> held = {};
  // For the previous clock, which has its set: ranks that were refused since, and are awaited.
  std::vector<uint32_t> refused = {};
  bool operator==(const HeldClock&) const = default;
};

// Not thread-safe.
class HeldBook {
 public:
  struct Rules {
    uint32_t workers = 1;
    // How many of the awaited ranks a clock can do without.
    uint32_t backup = 0;
    // Only live ranks are waited for.
    bool live_only = false;
    // Of this server.
    uint32_t blocks = 1;
  };
  explicit HeldBook(const Rules& rules);

  // A block begins at this version: of clocks before it nothing comes to it. (A server that takes
  // blocks over has those that were ahead, and those that were not.)
  void OnLoaded(uint64_t version);
  // A block has accepted a contribution; once a (rank, clock, block). True: it is whole now.
  bool OnAccepted(uint32_t rank, uint64_t clock, Time now = {});
  // A contribution that is in its clock's set cannot be applied.
  void OnRefused(uint32_t rank, uint64_t clock);
  void OnLive(uint32_t rank, bool live);
  // The clock's set is known, so nothing more needs to be told of it or of earlier clocks.
  void OnCommitted(uint64_t clock);

  // What is worth telling and was not told: the first open clock, once its set could be complete as
  // far as this server knows, and again with every rank that comes later; and who was refused.
  std::optional<HeldClock> Take(Time now = {});
  // What was told last did not arrive, or no set has come of it for long: Take() gives it once
  // more.
  void TellAgain();

 private:
  struct Clock {
    // By rank: how many blocks hold its contribution.
    std::map<uint32_t, uint32_t> blocks;
    // By rank whose contribution every block holds: since when.
    std::map<uint32_t, Time> whole;
    // There is something to tell; and something was told.
    bool changed = false;
    bool told = false;
  };
  bool Enough(const Clock& clock) const;
  // How many blocks a contribution of the clock comes to.
  uint32_t BlocksAt(uint64_t clock) const;

  const Rules rules_;
  std::set<uint32_t> lost_;
  // By version above the open clock: how many blocks began there.
  std::map<uint64_t, uint32_t> loaded_;
  // The first without a set.
  uint64_t open_ = 0;
  std::map<uint64_t, Clock> clocks_;
  // Of the clock before; and whether there is something of it to tell.
  std::set<uint32_t> refused_;
  bool tells_refused_ = false;
};

}  // namespace leeway
