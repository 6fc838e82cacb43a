// A protobuf message as a text file that tells when it was damaged: its JSON form and one more
// line, "sha256 HEX", the digest of all bytes before that line.
#pragma once

#include <cstdint>
#include <string>

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace leeway {

// Durably, in place of what was there. `what` is for messages: "manifest". RESOURCE_EXHAUSTED if
// the file would have more than `max_bytes`, so that nothing is written that cannot be read.
absl::Status WriteJsonFile(const std::string& what, const std::string& path, uint64_t max_bytes,
                           const google::protobuf::Message& message);

// DATA_LOSS if the file was damaged, NOT_FOUND if there is none. Fields that this build does not
// know are passed over.
absl::Status ReadJsonFile(const std::string& what, const std::string& path, uint64_t max_bytes,
                          google::protobuf::Message& message);

}  // namespace leeway
