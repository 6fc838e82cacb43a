// CRC-32 as in zlib and gzip (polynomial 0x04c11db7). It detects every error that is limited to 32
// consecutive bits.
#pragma once

#include <cstdint>
#include <span>

namespace leeway {

// Returns the CRC of `bytes`. If `bytes` continue a longer sequence, pass the CRC of everything
// before them as `before`; the result is then the CRC of the whole sequence.
uint32_t Crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace leeway
