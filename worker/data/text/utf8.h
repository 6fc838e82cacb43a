// Describes characters, and their places in a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/utf8.h"

namespace leeway {

// The UTF-8 of a code point.
std::string Utf8(uint32_t code);
// "'é' (U+00E9)", or "U+00E9" alone for a control character.
std::string DescribeCharacter(uint32_t code);

// "FILE:LINE:COLUMN" of byte `at`, which must begin a character. Both numbers count from 1; columns
// are in characters.
std::string PlaceInText(const std::string& path, std::string_view text, size_t at);

// INVALID_ARGUMENT with the place and the byte, unless all of `text` is UTF-8.
absl::Status CheckUtf8(const std::string& path, std::string_view text);
// The error of CheckUtf8 for the byte `at`.
absl::Status NotUtf8(const std::string& path, std::string_view text, size_t at);

}  // namespace leeway
