// What can be wrong with a message by itself, whoever sends it: looked at whole before anything of
// it is believed. INVALID_ARGUMENT, naming the field.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// What the numbers in a message are of.
struct MessageLimits {
  uint32_t workers = 0;
  uint32_t shards = 0;
  uint64_t generation = 0;
  // Of the placement.
  uint64_t epoch = 0;
  uint64_t clock = 0;
};

absl::Status CheckMessage(const v1::RegisterWorkerRequest& request);
absl::Status CheckMessage(const v1::LeaveRequest& request);
absl::Status CheckMessage(const v1::RegisterServerRequest& request);
absl::Status CheckMessage(const v1::LeaseDataRequest& request);
absl::Status CheckMessage(const v1::ServerHeartbeatRequest& request, const MessageLimits& limits);
absl::Status CheckMessage(const v1::ContributionsHeldRequest& request, const MessageLimits& limits);
// The file of a part of a cut is named, by a name that stays in the cut's folder, and digested.
absl::Status CheckSavedShard(const v1::SavedShard& shard, const MessageLimits& limits);

}  // namespace leeway
