// Numbers in the checkpoint's own files: little-endian, without padding.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace leeway {

static_assert(std::endian::native == std::endian::little);

template <typename T>
void AppendNumber(std::string& target, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  target.append(bytes, sizeof(T));
}

template <typename T>
T NumberAt(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

}  // namespace leeway
