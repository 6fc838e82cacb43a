// Every order in which the messages and updates of a small world can arrive, with one crash of a
// worker at any moment and one message repeated at any moment: not drawn, but all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/shape.h"

namespace leeway::sim {

struct Exhausted {
  // Different states met; those in which nothing more can happen; the longest way to one.
  uint64_t states = 0;
  uint64_t ends = 0;
  uint64_t depth = 0;
  // All were met, not only the first so many.
  bool complete = false;
  // The first broken promise, and the way to it; empty if none is.
  std::string violation;
  std::vector<std::string> trace;
};

// 2 workers, 2 servers with a block each, 2 clocks.
Exhausted Exhaust(const Wanted& wanted, uint64_t states_max);

}  // namespace leeway::sim
