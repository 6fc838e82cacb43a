// Where the coordinator's parts put what they want done: one list for all of them, so that its
// order is that of the decisions.
#pragma once

#include <utility>
#include <vector>

#include "server/coordinator/core/command.h"

namespace leeway {

// Pure; not thread-safe.
class Commands {
 public:
  Commands() = default;
  // Parts refer to it.
  Commands(const Commands&) = delete;

  void Push(Command command) { commands_.push_back(std::move(command)); }
  void Emit(Event event) { Push(std::move(event)); }
  // What was put there since the last call, in order.
  std::vector<Command> Take() { return std::exchange(commands_, {}); }

 private:
  std::vector<Command> commands_;
};

}  // namespace leeway
