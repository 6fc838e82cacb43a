// Encodings in independent groups of 256 values (group_codec.h), which a device can write, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway {

enum class GroupFormat : uint8_t { kBf16, kFp16, kInt8, kSign };

// Returns the number of floats whose memory can contain this number of encoded bytes.
constexpr size_t FloatsFor(size_t bytes) { return (bytes + sizeof(float) - 1) / sizeof(float); }

}  // namespace leeway
