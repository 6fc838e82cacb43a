// Changes to a job file from outside: LEEWAY__A__B in the environment and --set a.b=c. They are
// applied to the YAML tree before the strict reading, so the same rules apply to them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/problems.h"
#include "config/yaml_tree.h"

namespace leeway {

struct JobOverrides {
  // "a.b=c", in order: later ones win. c is YAML. A number in the path is an index into a list.
  // "a.b=" removes the key, so that its default holds.
  std::vector<std::string> sets;
  // {"LEEWAY__A__B", "c"} has the effect of a.b=c, with keys in any case. `sets` override it.
  std::vector<std::pair<std::string, std::string>> environment;
};

// The variables of this process that begin with LEEWAY__, by name.
std::vector<std::pair<std::string, std::string>> EnvironmentOverrides();

// Applies the overrides to the tree of a whole job. An override replaces the value at its path, and
// makes the maps on the way to it. If it sets one member of a oneof (stop.clocks), it removes the
// others.
void ApplyOverrides(const JobOverrides& overrides, YamlNode& root, Problems& problems);

}  // namespace leeway
