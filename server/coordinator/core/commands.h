// The list of commands. All parts of the coordinator's core add to this one list, so that the
// commands are in the order of the decisions.
#pragma once

#include <utility>
#include <vector>

#include "server/coordinator/core/command.h"

namespace leeway {

// Pure; not thread-safe.
class Commands {
 public:
  Commands() = default;
  // The parts refer to this object.
  Commands(const Commands&) = delete;

  void Push(Command command) { commands_.push_back(std::move(command)); }
  void Emit(Event event) { Push(std::move(event)); }
  // Returns the commands added since the last call, in order.
  std::vector<Command> Take() { return std::exchange(commands_, {}); }

 private:
  std::vector<Command> commands_;
};

}  // namespace leeway
