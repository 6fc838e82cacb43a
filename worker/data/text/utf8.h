// Characters of UTF-8 (RFC 3629), and where in a text they are.
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
// The UTF-8 of a code point.
std::string Utf8(uint32_t code);
// "'é' (U+00E9)"; without the character where it is a control character.
std::string DescribeCharacter(uint32_t code);

// "FILE:LINE:COLUMN" of byte `at`, which begins a character; both count from 1, columns in
// characters.
std::string PlaceInText(const std::string& path, std::string_view text, size_t at);

// INVALID_ARGUMENT with the place and the byte, unless all of `text` is UTF-8.
absl::Status CheckUtf8(const std::string& path, std::string_view text);
// That error, for the byte `at`.
absl::Status NotUtf8(const std::string& path, std::string_view text, size_t at);

}  // namespace leeway
