#include "worker/data/text.h"

#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr size_t kMaxQuoted = 40;

// absl reads 0x10 as 16; data files mean no such thing.
bool LooksHexadecimal(absl::string_view text) {
  return text.find_first_of("xX") != absl::string_view::npos;
}

absl::Status NotANumber(absl::string_view text) {
  if (absl::StripAsciiWhitespace(text).empty()) return absl::InvalidArgumentError("an empty value");
  return absl::InvalidArgumentError(absl::StrCat(Quote(text), " is not a finite number"));
}

}  // namespace

Lines::Lines(absl::string_view text) : rest_(absl::StripPrefix(text, kByteOrderMark)) {}

bool Lines::Next(absl::string_view& line) {
  if (rest_.empty()) return false;
  const size_t end = rest_.find('\n');
  line = absl::StripSuffix(rest_.substr(0, end), "\r");
  rest_.remove_prefix(end == absl::string_view::npos ? rest_.size() : end + 1);
  ++number_;
  return true;
}

absl::StatusOr<double> ParseNumber(absl::string_view text) {
  double value;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value) || LooksHexadecimal(text)) {
    return NotANumber(text);
  }
  return value;
}

absl::StatusOr<float> ParseFloat(absl::string_view text) {
  float value;
  if (!absl::SimpleAtof(text, &value) || !std::isfinite(value) || LooksHexadecimal(text)) {
    return NotANumber(text);
  }
  return value;
}

std::string Quote(absl::string_view text) {
  const bool long_text = text.size() > kMaxQuoted;
  return absl::StrCat("'", absl::CEscape(text.substr(0, kMaxQuoted)), long_text ? "...'" : "'");
}

}  // namespace leeway
