// Tracks which ranks' contributions a server has for all of its blocks, and decides when to tell
// the coordinator. For sync mode with committed sets. A pure class, without threads, clocks or I/O.
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
  // The ranks whose contributions every block has, in rising order.
  std::vector<uint32_t> ranks = {};
  // True if the clock was reported before and has no set yet.
  bool again = false;
  // In the order of `ranks`: for how long every block has had the contribution.
  std::vector<Duration> held = {};
  // The ranks whose contributions to the previous clock were refused after its set was known. The
  // server still waits for these contributions.
  std::vector<uint32_t> refused = {};
  bool operator==(const HeldClock&) const = default;
};

// Not thread-safe.
class HeldBook {
 public:
  struct Rules {
    uint32_t workers = 1;
    // A clock can do without this number of the ranks that are waited for.
    uint32_t backup = 0;
    // True if a clock waits for live ranks only.
    bool live_only = false;
    // The number of blocks of this server.
    uint32_t blocks = 1;
  };
  explicit HeldBook(const Rules& rules);

  // Reports that a block begins at this version, so it gets no contributions of earlier clocks. (If
  // a server takes over blocks, they may be at different versions.)
  void OnLoaded(uint64_t version);
  // Reports that a block has accepted a contribution. Call this once for each rank, clock and
  // block. Returns true if every block has the contribution now.
  bool OnAccepted(uint32_t rank, uint64_t clock, Time now = {});
  // Reports that a contribution in its clock's set cannot be applied.
  void OnRefused(uint32_t rank, uint64_t clock);
  void OnLive(uint32_t rank, bool live);
  // Reports that the clock's set is known, so this clock and earlier clocks need no more reports.
  void OnCommitted(uint64_t clock);

  // Returns the next report to send, or nullopt if no report is due. A report on the first clock
  // without a set is due when, as far as this server knows, its set could be complete, and again
  // whenever another rank arrives. A report is also due when ranks have been refused.
  std::optional<HeldClock> Take(Time now = {});
  // Makes Take() return the last report again, because it did not arrive, or because no set has
  // followed it for long.
  void TellAgain();

 private:
  struct Clock {
    // By rank: the number of blocks that have the rank's contribution.
    std::map<uint32_t, uint32_t> blocks;
    // By rank, if every block has its contribution: when the last block accepted it.
    std::map<uint32_t, Time> whole;
    // True if `whole` has changed since the last report.
    bool changed = false;
    // True if the clock has been reported.
    bool told = false;
  };
  bool Enough(const Clock& clock) const;
  // Returns the number of blocks that get contributions of the clock.
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
  // True if refused ranks must still be reported.
  bool tells_refused_ = false;
};

}  // namespace leeway
