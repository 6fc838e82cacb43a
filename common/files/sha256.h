// SHA-256 digests as lower-case hexadecimal.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace leeway {

std::string HexSha256(std::string_view bytes);

// Returns the digest of the weights as little-endian float32 bytes. Two models have the same digest
// if and only if they are bit-identical.
std::string WeightsSha256(std::span<const float> weights);

}  // namespace leeway
