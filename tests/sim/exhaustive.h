// Tries every order in which the messages and updates of a small world can arrive. In each, at
// every moment, one worker may crash and one message may be repeated. All cases are tried, not a
// sample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/shape.h"

namespace leeway::sim {

struct Exhausted {
  // The number of different states, the number of those in which nothing more can happen, and the
  // length of the longest path to one.
  uint64_t states = 0;
  uint64_t ends = 0;
  uint64_t depth = 0;
  // Every state was visited: `states_max` was not reached.
  bool complete = false;
  // The first broken promise and the path to it; empty if every promise holds.
  std::string violation;
  std::vector<std::string> trace;
};

// Searches a world of 2 workers, 2 servers with one block each, and 2 clocks.
Exhausted Exhaust(const Wanted& wanted, uint64_t states_max);

}  // namespace leeway::sim
