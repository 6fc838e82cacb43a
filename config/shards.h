// The parts into which the blocks are dealt (servers.shards). They move between servers as a whole.
#pragma once

#include <cstdint>

#include "leeway/v1/job.pb.h"

namespace leeway {

// servers.shards with its default. Block i is in shard i modulo this number.
uint32_t ShardsOf(const v1::TrainingJob& job);
// servers.min with its default.
uint32_t ServersMin(const v1::TrainingJob& job);

// The limit of a message (common/rpc/channel.h), less the bytes beside the values. A block goes to
// another server with all of its state in one message.
inline constexpr uint64_t kStateBytesMax = 71 << 20;

// The number of vectors of a block's size that make up its state. These are the weights and, if
// they exist, the update rule's slots, what the workers have instead of the weights, and what they
// had of the previous version.
uint64_t StateVectors(const v1::TrainingJob& job);

}  // namespace leeway
