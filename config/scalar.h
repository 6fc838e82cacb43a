// Reads single values strictly, and writes them.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leeway {

// Return true for decimal numbers: an optional sign, digits without leading zeros, and for IsNumber
// also a fraction and an exponent. Hexadecimal, octal, underscores, .nan and .inf are not accepted.
bool IsWholeNumber(std::string_view text);
bool IsNumber(std::string_view text);

// Returns a finite number. INVALID_ARGUMENT has a message that fits after "path: ".
absl::StatusOr<double> ParseNumber(std::string_view text);
absl::StatusOr<bool> ParseBool(std::string_view text);

// Returns the shortest string from which ParseNumber reads the same value. `value` is finite.
std::string FormatNumber(double value);

}  // namespace leeway
