// The encodings in independent groups of 256 values (group_codec.h). A GPU can write these
// encodings, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway {

enum class GroupFormat : uint8_t { kBf16, kFp16, kInt8, kSign };

// Returns the number of floats whose memory has room for `bytes` encoded bytes.
constexpr size_t FloatsFor(size_t bytes) { return (bytes + sizeof(float) - 1) / sizeof(float); }

}  // namespace leeway
