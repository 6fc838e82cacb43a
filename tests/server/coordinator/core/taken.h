// The commands of a part of the coordinator, for tests of that part alone.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "server/coordinator/core/commands.h"

namespace leeway {

// Returns the names of the events among the commands since the last call, and drops the other
// commands.
inline std::vector<std::string> TakenEvents(Commands& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands.Take()) {
    if (const auto* event = std::get_if<Event>(&command)) names.push_back(event->name);
  }
  return names;
}

// Returns the commands of one kind since the last call, and drops the others.
template <typename Kind>
std::vector<Kind> Taken(Commands& commands) {
  std::vector<Kind> taken;
  for (Command& command : commands.Take()) {
    if (Kind* kind = std::get_if<Kind>(&command)) taken.push_back(std::move(*kind));
  }
  return taken;
}

using Names = std::vector<std::string>;

}  // namespace leeway
