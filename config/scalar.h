// The strict reading of single values, and their writing.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leeway {

// Decimal: an optional sign, digits without leading zeros, and for a real number a fraction and an
// exponent. Hexadecimal, octal, underscores, .nan and .inf are no numbers here.
bool IsWholeNumber(std::string_view text);
bool IsNumber(std::string_view text);

// Finite; INVALID_ARGUMENT with a message that fits behind "path: ".
absl::StatusOr<double> ParseNumber(std::string_view text);
absl::StatusOr<bool> ParseBool(std::string_view text);

// The shortest text that ParseNumber reads back to the same value; `value` is finite.
std::string FormatNumber(double value);

}  // namespace leeway
