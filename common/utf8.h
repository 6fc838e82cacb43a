// Characters of UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leeway {

// Code points are below this.
inline constexpr uint32_t kCodePoints = 0x110000;

struct Character {
  uint32_t code = 0;
  // Of its form in UTF-8.
  size_t bytes = 0;
};

// The first character of `text`. Nothing if the bytes there are not UTF-8; overlong forms and
// surrogates are not. `text` is not empty.
std::optional<Character> FirstCharacter(std::string_view text);

// INVALID_ARGUMENT unless the path is UTF-8, as what messages carry must be.
absl::Status CheckPathIsUtf8(const std::string& path);

}  // namespace leeway
