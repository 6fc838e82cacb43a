// A protobuf message as a text file that shows whether it was damaged. The file has the message's
// JSON form and one more line, "sha256 HEX", the digest of all bytes before that line.
#pragma once

#include <cstdint>
#include <string>

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace leeway {

// Writes durably, and replaces an existing file. `what` names the file in messages, such as
// "manifest". RESOURCE_EXHAUSTED if the file would have more than `max_bytes`, so that every
// written file can be read.
absl::Status WriteJsonFile(const std::string& what, const std::string& path, uint64_t max_bytes,
                           const google::protobuf::Message& message);

// DATA_LOSS if the file is damaged, NOT_FOUND if it does not exist. Fields that this build does not
// know are ignored.
absl::Status ReadJsonFile(const std::string& what, const std::string& path, uint64_t max_bytes,
                          google::protobuf::Message& message);

}  // namespace leeway
