// Describes characters, and their places in a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/utf8.h"

namespace leeway {

// Returns the UTF-8 bytes of a code point.
std::string Utf8(uint32_t code);
// Returns "'é' (U+00E9)", or "U+00E9" alone for a control character.
std::string DescribeCharacter(uint32_t code);

// Returns "FILE:LINE:COLUMN" for byte `at`, which must begin a character. Lines and columns count
// from 1, and a column is one character.
std::string PlaceInText(const std::string& path, std::string_view text, size_t at);

// Returns INVALID_ARGUMENT, with the place and the byte, unless all of `text` is UTF-8.
absl::Status CheckUtf8(const std::string& path, std::string_view text);
// Returns the error of CheckUtf8 for the byte `at`.
absl::Status NotUtf8(const std::string& path, std::string_view text, size_t at);

}  // namespace leeway
