// Changes to a job file from outside: LEEWAY__A__B in the environment and --set a.b=c. They are
// applied to the YAML tree, before the strict reading, so they are held to the same rules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/problems.h"
#include "config/yaml_tree.h"

namespace leeway {

struct JobOverrides {
  // "a.b=c", in order; later ones win. c is YAML; a number in the path is an index into a list.
  // "a.b=" removes the key, so that its default holds.
  std::vector<std::string> sets;
  // {"LEEWAY__A__B", "c"}: like a.b=c, keys in any case. Weaker than `sets`.
  std::vector<std::pair<std::string, std::string>> environment;
};

// The variables of this process that begin with LEEWAY__, by name.
std::vector<std::pair<std::string, std::string>> EnvironmentOverrides();

// Applies them to the tree of a whole job. An override replaces the value at its path, makes the
// maps on the way to it, and where it sets one member of a oneof (stop.clocks) removes the others.
void ApplyOverrides(const JobOverrides& overrides, YamlNode& root, Problems& problems);

}  // namespace leeway
