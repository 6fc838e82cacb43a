// Committed sets: what every block is at each clock, by nothing but the sets that the coordinator
// has committed. Servers and workers are held to it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/sim/message.h"

namespace leeway::sim {

class SetHistory {
 public:
  // From now on this generation, which goes on from the cut at `clock` of those before it.
  void Begin(const Shape& shape, uint64_t generation, uint64_t clock);
  // A bit a rank. False: the clock has another set already, or is not the one after the last.
  bool Commit(const Shape& shape, uint64_t generation, uint64_t clock, uint64_t ranks);

  // The clock's set; nothing: it has none yet.
  std::optional<uint64_t> SetOf(uint64_t generation, uint64_t clock) const;
  // The block as `version`, in this generation.
  bool Is(uint64_t generation, uint32_t block, const Version& version) const;

 private:
  struct State {
    std::array<Version, kBlocksMax> blocks;
    // Of the clock that begins with it.
    std::optional<uint64_t> set;
  };
  struct Generation {
    uint64_t number = 0;
    // By clock.
    std::vector<State> states;
  };
  // Among them; their number: it has not begun.
  size_t IndexOf(uint64_t generation) const;
  // Null: there is none at that clock.
  const State* StateAt(uint64_t generation, uint64_t clock) const;
  std::vector<Generation> generations_;
};

}  // namespace leeway::sim
