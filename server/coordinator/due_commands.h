// Holds, in order, the core's commands that the host has yet to carry out, and the time at which
// the core issued each. Also holds the time of the core's next tick.
#pragma once

#include <iterator>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "server/coordinator/core/command.h"

namespace leeway {

struct Due {
  Command command;
  // The time at which the core issued the command, in seconds since 1970.
  double wall = 0;
};

// Not thread-safe.
class DueCommands {
 public:
  DueCommands(Duration tick, Time now) : tick_(tick), next_tick_(now + tick) {}

  void Add(std::vector<Command> commands, double wall) {
    for (Command& command : commands) due_.push_back({std::move(command), wall});
  }
  // Puts back a record that could not be written, and the commands after it, in front of the
  // commands that have been added meanwhile. No command is ready before the next tick.
  void KeepBack(std::vector<Due> due) {
    due.insert(due.end(), std::move_iterator(due_.begin()), std::move_iterator(due_.end()));
    due_ = std::move(due);
    kept_back_ = true;
  }
  bool kept_back() const { return kept_back_; }
  // Returns true if there are commands to carry out now.
  bool ready() const { return !due_.empty() && !kept_back_; }
  std::vector<Due> Take() { return std::exchange(due_, {}); }

  Time next_tick() const { return next_tick_; }
  // Notes that the core has ticked at `now`. Commands that were kept back become ready again.
  void Ticked(Time now) {
    next_tick_ = now + tick_;
    kept_back_ = false;
  }

 private:
  const Duration tick_;
  Time next_tick_;
  std::vector<Due> due_;
  // True if due_ begins with a record that could not be written.
  bool kept_back_ = false;
};

}  // namespace leeway
