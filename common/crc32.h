// CRC-32 as zlib and gzip have it (polynomial 0x04c11db7): finds every error of up to 32 bits in a
// row.
#pragma once

#include <cstdint>
#include <span>

namespace leeway {

// `before`: the CRC of what comes before these bytes.
uint32_t Crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace leeway
