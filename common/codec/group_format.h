// The encodings whose values go in groups of 256, each by itself (group_codec.h): a device can
// write them, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway {

enum class GroupFormat : uint8_t { kBf16, kFp16, kInt8, kSign };

// Floats of memory that hold so many encoded bytes.
constexpr size_t FloatsFor(size_t bytes) { return (bytes + sizeof(float) - 1) / sizeof(float); }

}  // namespace leeway
