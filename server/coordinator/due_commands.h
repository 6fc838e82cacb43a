// Commands of the core on their way to be done: in order, with the time at which they were given;
// and when the core's next tick is.
#pragma once

#include <iterator>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "server/coordinator/core/command.h"

namespace leeway {

struct Due {
  Command command;
  // Seconds since 1970.
  double wall = 0;
};

// Not thread-safe.
class DueCommands {
 public:
  DueCommands(Duration tick, Time now) : tick_(tick), next_tick_(now + tick) {}

  void Add(std::vector<Command> commands, double wall) {
    for (Command& command : commands) due_.push_back({std::move(command), wall});
  }
  // A record that could not be written, and what came after it: nothing is ready before the next
  // tick. What has come meanwhile comes after them.
  void KeepBack(std::vector<Due> due) {
    due.insert(due.end(), std::move_iterator(due_.begin()), std::move_iterator(due_.end()));
    due_ = std::move(due);
    kept_back_ = true;
  }
  bool kept_back() const { return kept_back_; }
  // There is something to be done now.
  bool ready() const { return !due_.empty() && !kept_back_; }
  std::vector<Due> Take() { return std::exchange(due_, {}); }

  Time next_tick() const { return next_tick_; }
  // The core's tick was at `now`; what was kept back is tried again.
  void Ticked(Time now) {
    next_tick_ = now + tick_;
    kept_back_ = false;
  }

 private:
  const Duration tick_;
  Time next_tick_;
  std::vector<Due> due_;
  // They begin with a record that could not be written.
  bool kept_back_ = false;
};

}  // namespace leeway
