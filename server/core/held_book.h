// In sync mode with committed sets: tracks which ranks' contributions a server has on all its
// blocks, and decides when to tell the coordinator. A pure class, without threads, clocks or I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/clock.h"

namespace leeway {

// A report to the coordinator about the contributions of one clock.
struct HeldClock {
  uint64_t clock = 0;
  // The ranks whose contributions are on every block, in rising order.
  std::vector<uint32_t> ranks = {};
  // Whether the clock was reported before and has no set yet.
  bool again = false;
  // In the order of `ranks`: how long all blocks have had the contribution.
  std::vector<Duration> held = {};
  // The ranks whose contributions to the previous clock were refused after its set was known, and
  // are still awaited.
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

  // Reports that a block begins at this version, so it gets no contributions of earlier clocks. (A
  // server that takes over blocks may get the blocks at different versions.)
  void OnLoaded(uint64_t version);
  // Reports that a block has accepted a contribution. To be called once for each rank, clock and
  // block. Returns whether this was the last block without the contribution.
  bool OnAccepted(uint32_t rank, uint64_t clock, Time now = {});
  // Reports that a contribution in its clock's set cannot be applied.
  void OnRefused(uint32_t rank, uint64_t clock);
  void OnLive(uint32_t rank, bool live);
  // Reports that the clock's set is known, so this clock and earlier clocks need no more reports.
  void OnCommitted(uint64_t clock);

  // Returns the next report to send, or nullopt if no report is due. The first open clock is
  // reported when its set could be complete as far as this server knows, and again with every later
  // rank. Refused ranks are reported, too.
  std::optional<HeldClock> Take(Time now = {});
  // Makes Take() return the last report again, because the report did not arrive or has led to no
  // set for long.
  void TellAgain();

 private:
  struct Clock {
    // By rank: the number of blocks that have the rank's contribution.
    std::map<uint32_t, uint32_t> blocks;
    // By rank, if its contribution is on every block: the time since when.
    std::map<uint32_t, Time> whole;
    // Whether `whole` has changed since the last report.
    bool changed = false;
    // Whether the clock has been reported.
    bool told = false;
  };
  bool Enough(const Clock& clock) const;
  // The number of blocks that get a contribution of the clock.
  uint32_t BlocksAt(uint64_t clock) const;

  const Rules rules_;
  std::set<uint32_t> lost_;
  // By version above the open clock: the number of blocks that began at that version.
  std::map<uint64_t, uint32_t> loaded_;
  // The first clock without a set.
  uint64_t open_ = 0;
  std::map<uint64_t, Clock> clocks_;
  // The refused ranks of the previous clock.
  std::set<uint32_t> refused_;
  // Whether refused ranks must still be reported.
  bool tells_refused_ = false;
};

}  // namespace leeway
