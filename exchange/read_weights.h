// Reads the weights with which a worker begins a clock.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "client/calls/parameter_client.h"

namespace leeway {

// Reads the weights that a worker may see when it starts `clock`, and returns their version. After
// ALREADY_EXISTS no call is in progress that could still write to `weights`.
absl::StatusOr<uint64_t> ReadWeights(ParameterClient& client, uint64_t clock,
                                     std::span<float> weights);

}  // namespace leeway
