// CRC-32 as in zlib and gzip (polynomial 0x04c11db7). It detects every error that is limited to 32
// consecutive bits.
#pragma once

#include <cstdint>
#include <span>

namespace leeway {

// Returns the CRC of `bytes`, or of a longer sequence that ends with them: then `before` is the
// CRC of the bytes that precede them.
uint32_t Crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace leeway
