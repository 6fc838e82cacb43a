// Reads characters in UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leeway {

// The number of possible code points, which begin at 0.
inline constexpr uint32_t kCodePoints = 0x110000;

struct Character {
  uint32_t code = 0;
  // The number of bytes of the character in UTF-8.
  size_t bytes = 0;
};

// Returns the first character of `text`, which must not be empty. Returns nothing if its bytes are
// not valid UTF-8. Overlong forms and surrogates are not valid.
std::optional<Character> FirstCharacter(std::string_view text);

// Returns INVALID_ARGUMENT unless the path is UTF-8, because protobuf requires that of strings.
absl::Status CheckPathIsUtf8(const std::string& path);

}  // namespace leeway
