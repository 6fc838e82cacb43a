// Checks a job against the rules in job.proto: required keys, bounds, lengths.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/message.h>

namespace leeway {

// A mistake in a job. `path` is the key's path in the YAML: "model.layers.3.dense.units".
struct Fault {
  std::string path;
  std::string message;
};

// Walks the message and everything in it, and adds all violations of the rules.
void CheckRules(const google::protobuf::Message& message, const std::string& path,
                std::vector<Fault>& faults);

}  // namespace leeway
