// Reads characters in UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leeway {

// All code points are below this.
inline constexpr uint32_t kCodePoints = 0x110000;

struct Character {
  uint32_t code = 0;
  // The length of its form in UTF-8.
  size_t bytes = 0;
};

// Returns the first character of `text`, which must not be empty. Returns nothing if the bytes
// there are not UTF-8; overlong forms and surrogates are not.
std::optional<Character> FirstCharacter(std::string_view text);

// INVALID_ARGUMENT unless the path is UTF-8, which messages require.
absl::Status CheckPathIsUtf8(const std::string& path);

}  // namespace leeway
