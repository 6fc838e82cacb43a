// Reads a YAML tree into a message of job.proto, and checks keys and types. config/rules.h checks
// the values.
#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "config/problems.h"
#include "config/yaml_tree.h"

namespace leeway {

// Fills `message` from the map `node`, whose path in the job is `path` (empty for the job itself).
// Adds unknown and duplicate keys, wrong types and numbers that do not fit to `problems`. A field
// with a problem stays unset.
void Decode(const YamlNode& node, const std::string& path, google::protobuf::Message& message,
            Problems& problems);

// Returns "a.b" for "a" and "b".
std::string JoinPath(const std::string& path, const std::string& key);

}  // namespace leeway
