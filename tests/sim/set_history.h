// Committed sets: the state of every block at each clock, computed from nothing but the sets that
// the coordinator has committed. Servers and workers are checked against it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/sim/message.h"

namespace leeway::sim {

class SetHistory {
 public:
  // Begins a generation, which continues from the cut at `clock` of an earlier generation.
  void Begin(const Shape& shape, uint64_t generation, uint64_t clock);
  // Adds the set of a clock, one bit for each rank. False: the clock has another set already, or
  // does not follow the last one.
  bool Commit(const Shape& shape, uint64_t generation, uint64_t clock, uint64_t ranks);

  // The clock's set; nothing if no set is committed yet.
  std::optional<uint64_t> SetOf(uint64_t generation, uint64_t clock) const;
  // Whether `version` is a state that the block has in this generation.
  bool Is(uint64_t generation, uint32_t block, const Version& version) const;

 private:
  struct State {
    std::array<Version, kBlocksMax> blocks;
    // The committed set of the clock that begins with this state.
    std::optional<uint64_t> set;
  };
  struct Generation {
    uint64_t number = 0;
    // By clock.
    std::vector<State> states;
  };
  // The generation's index in the list; the list's size if the generation has not begun.
  size_t IndexOf(uint64_t generation) const;
  // The state at that clock; null if no state is known.
  const State* StateAt(uint64_t generation, uint64_t clock) const;
  std::vector<Generation> generations_;
};

}  // namespace leeway::sim
