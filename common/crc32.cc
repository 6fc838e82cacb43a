#include "common/crc32.h"

#include <zlib.h>

namespace leeway {

uint32_t Crc32(std::span<const uint8_t> bytes, uint32_t before) {
  // If the pointer is null, zlib returns its start value and not `before`.
  if (bytes.empty()) return before;
  return static_cast<uint32_t>(crc32_z(before, bytes.data(), bytes.size()));
}

}  // namespace leeway
