#include "config/scalar.h"

#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

// Removes the digits at the front of `text`, and returns their number.
size_t TakeDigits(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && absl::ascii_isdigit(text[count])) ++count;
  text.remove_prefix(count);
  return count;
}

void TakeSign(std::string_view& text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
}

// Removes a sign and digits from the front of `text`. Returns false if the number has a leading
// zero.
bool TakeWhole(std::string_view& text, size_t& digits) {
  TakeSign(text);
  const bool zero = !text.empty() && text[0] == '0';
  digits = TakeDigits(text);
  return !zero || digits == 1;
}

}  // namespace

bool IsWholeNumber(std::string_view text) {
  size_t digits = 0;
  return TakeWhole(text, digits) && digits > 0 && text.empty();
}

bool IsNumber(std::string_view text) {
  size_t digits = 0;
  if (!TakeWhole(text, digits)) return false;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    digits += TakeDigits(text);
  }
  if (digits == 0) return false;
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    TakeSign(text);
    if (TakeDigits(text) == 0) return false;
  }
  return text.empty();
}

absl::StatusOr<double> ParseNumber(std::string_view text) {
  double value = 0;
  if (!IsNumber(text) || !absl::SimpleAtod(std::string(text), &value)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "needs a decimal number, such as 0.5 or 1e-3; it is '", std::string(text), "'"));
  }
  if (!std::isfinite(value)) {
    return absl::InvalidArgumentError(absl::StrCat("is too large: ", std::string(text)));
  }
  return value;
}

absl::StatusOr<bool> ParseBool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return absl::InvalidArgumentError(
      absl::StrCat("needs true or false; it is '", std::string(text), "'"));
}

std::string FormatNumber(double value) {
  // Uses no exponent if the number is then not too long.
  const double size = std::fabs(value);
  const bool fixed = size == 0 || (size >= 1e-5 && size < 1e15);
  std::array<char, 64> buffer;
  const std::to_chars_result result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    fixed ? std::chars_format::fixed : std::chars_format::scientific);
  return std::string(buffer.data(), result.ptr);
}

}  // namespace leeway
