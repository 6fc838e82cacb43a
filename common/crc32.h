// CRC-32 as in zlib and gzip (polynomial 0x04c11db7). It finds each error of up to 32 consecutive
// bits.
#pragma once

#include <cstdint>
#include <span>

namespace leeway {

// `before`: the CRC of the bytes that precede these bytes.
uint32_t Crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace leeway
