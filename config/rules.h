// The rules that job.proto writes beside its fields: required, bounds, lengths.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/message.h>

namespace leeway {

// Something wrong with a job. The path is the one of the YAML: "model.layers.3.dense.units".
struct Fault {
  std::string path;
  std::string message;
};

// Walks the message and everything in it, and adds what breaks a rule.
void CheckRules(const google::protobuf::Message& message, const std::string& path,
                std::vector<Fault>& faults);

}  // namespace leeway
