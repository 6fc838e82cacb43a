// What a worker begins a clock with.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "client/calls/parameter_client.h"

namespace leeway {

// Reads the weights as a worker starting `clock` may see them; their version. After ALREADY_EXISTS
// nothing of it is under way that could still write there.
absl::StatusOr<uint64_t> ReadWeights(ParameterClient& client, uint64_t clock,
                                     std::span<float> weights);

}  // namespace leeway
