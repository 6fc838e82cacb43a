// The shards into which the blocks are distributed (servers.shards). A shard moves between servers
// as a whole.
#pragma once

#include <cstdint>

#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns servers.shards or its default. If workers hold the blocks, each worker has one shard.
// Block i is in shard i modulo this number.
uint32_t ShardsOf(const v1::TrainingJob& job);
// Returns the largest number of servers that the job can have. Each server has a shard, except a
// coordinator that holds no blocks.
uint32_t ServersMost(const v1::TrainingJob& job);
// Returns servers.min or its default.
uint32_t ServersMin(const v1::TrainingJob& job);

// The largest size of a block's state. A server sends it to another server in one message, so it is
// a message's limit (common/rpc/channel.h) less some bytes for all but the values.
inline constexpr uint64_t kStateBytesMax = 71 << 20;

// Returns the number of vectors in a block's state, each of the block's size: the weights, and if
// present the update rule's slots, the weights that the workers have (if these differ from the
// block's), and those that the workers had at the previous version.
uint64_t StateVectors(const v1::TrainingJob& job);

}  // namespace leeway
