// Overrides of a job file's keys: LEEWAY__A__B in the environment and --set a.b=c. They change the
// YAML tree before it is read strictly, so the same rules hold for them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/problems.h"
#include "config/yaml_tree.h"

namespace leeway {

struct JobOverrides {
  // Strings "a.b=c", applied in order, so that later ones override earlier ones. c is YAML. A
  // number in the path is an index into a list. "a.b=" removes the key, so that its default holds.
  std::vector<std::string> sets;
  // Names and values of variables. {"LEEWAY__A__B", "c"} has the effect of a.b=c, with keys in any
  // case. `sets` take precedence.
  std::vector<std::pair<std::string, std::string>> environment;
};

// Returns the variables of this process that begin with LEEWAY__, sorted by name.
std::vector<std::pair<std::string, std::string>> EnvironmentOverrides();

// Applies the overrides to the tree of a whole job. An override replaces the value at its path, and
// adds missing maps on the path. If it sets one member of a oneof (stop.clocks), it removes the
// other members.
void ApplyOverrides(const JobOverrides& overrides, YamlNode& root, Problems& problems);

}  // namespace leeway
