// Reads what a worker begins a clock with.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "client/calls/parameter_client.h"

namespace leeway {

// Reads the weights as a worker that starts `clock` may see them, and returns their version. After
// ALREADY_EXISTS nothing is in progress that could still write to `weights`.
absl::StatusOr<uint64_t> ReadWeights(ParameterClient& client, uint64_t clock,
                                     std::span<float> weights);

}  // namespace leeway
