// Checks of a message that need no facts about its sender. A message is checked as a whole before
// any part of it is used. If a message is wrong, the checks return INVALID_ARGUMENT, naming the
// field.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The upper limits of the numbers in a message.
struct MessageLimits {
  uint32_t workers = 0;
  uint32_t shards = 0;
  uint64_t generation = 0;
  // The epoch of the placement.
  uint64_t epoch = 0;
  uint64_t clock = 0;
};

absl::Status CheckMessage(const v1::RegisterWorkerRequest& request);
absl::Status CheckMessage(const v1::LeaveRequest& request);
absl::Status CheckMessage(const v1::RegisterServerRequest& request);
absl::Status CheckMessage(const v1::LeaseDataRequest& request);
absl::Status CheckMessage(const v1::ServerHeartbeatRequest& request, const MessageLimits& limits);
absl::Status CheckMessage(const v1::ContributionsHeldRequest& request, const MessageLimits& limits);
// Checks that a part of a cut has a digest, and a file name that does not lead out of the cut's
// folder.
absl::Status CheckSavedShard(const v1::SavedShard& shard, const MessageLimits& limits);

}  // namespace leeway
