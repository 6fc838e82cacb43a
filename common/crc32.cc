#include "common/crc32.h"

#include <zlib.h>

namespace leeway {

uint32_t Crc32(std::span<const uint8_t> bytes, uint32_t before) {
  // zlib returns its start value, not `before`, if the pointer is null.
  if (bytes.empty()) return before;
  return static_cast<uint32_t>(crc32_z(before, bytes.data(), bytes.size()));
}

}  // namespace leeway
