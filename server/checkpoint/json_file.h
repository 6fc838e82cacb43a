// Writes and reads a protobuf message as a text file with a checksum. The file contains the message
// in JSON and one more line, "sha256 HEX", which is the digest of all bytes before that line.
#pragma once

#include <cstdint>
#include <string>

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace leeway {

// Writes durably, and replaces an existing file. `what` names the file in messages, such as
// "manifest". Returns RESOURCE_EXHAUSTED if the file would have more than `max_bytes`, because
// ReadJsonFile would refuse such a file.
absl::Status WriteJsonFile(const std::string& what, const std::string& path, uint64_t max_bytes,
                           const google::protobuf::Message& message);

// Returns DATA_LOSS if the file is damaged, and NOT_FOUND if it does not exist. Ignores fields that
// this build does not know.
absl::Status ReadJsonFile(const std::string& what, const std::string& path, uint64_t max_bytes,
                          google::protobuf::Message& message);

}  // namespace leeway
