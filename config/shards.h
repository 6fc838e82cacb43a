// The parts that the blocks are dealt into (servers.shards), which move between servers as a whole.
#pragma once

#include <cstdint>

#include "leeway/v1/job.pb.h"

namespace leeway {

// servers.shards with its default: block i is in shard i mod this.
uint32_t ShardsOf(const v1::TrainingJob& job);
// servers.min with its default.
uint32_t ServersMin(const v1::TrainingJob& job);

// Of a message (common/rpc/channel.h), less what is said beside the values: a block goes to another
// server with all of its state in one.
inline constexpr uint64_t kStateBytesMax = 71 << 20;

// Vectors of a block's size that make up its state: weights and, where there are such, the update
// rule's slots, what workers have instead of the weights, what they had of the version before.
uint64_t StateVectors(const v1::TrainingJob& job);

}  // namespace leeway
