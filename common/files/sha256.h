// SHA-256 digests as lower-case hexadecimal.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace leeway {

std::string HexSha256(std::string_view bytes);

// The digest of the weights' little-endian float32 bytes: equal if and only if the models are
// bit-identical.
std::string WeightsSha256(std::span<const float> weights);

}  // namespace leeway
