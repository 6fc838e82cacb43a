#include "worker/data/text.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "worker/data/limits.h"

namespace leeway {
namespace {

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr size_t kMaxQuoted = 40;
constexpr size_t kFirstBuffer = 256 << 10;

// Returns true if the text looks like a hexadecimal number. absl reads 0x10 as 16, but data files
// do not have such numbers.
bool LooksHexadecimal(absl::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c == 'x' || c == 'X'; });
}

absl::Status NotANumber(absl::string_view text) {
  if (absl::StripAsciiWhitespace(text).empty()) return absl::InvalidArgumentError("an empty value");
  return absl::InvalidArgumentError(absl::StrCat(Quote(text), " is not a finite number"));
}

}  // namespace

Lines::Lines(ByteStream& bytes, const std::string& path)
    : bytes_(bytes), path_(path), buffer_(kFirstBuffer) {}

absl::Status Lines::Fill() {
  std::copy(buffer_.begin() + begin_, buffer_.begin() + end_, buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  if (end_ > kMaxLineBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path_, ":", number_ + 1, ": the line has more than the ", kMaxLineBytes,
        " bytes that a line of data may have; is this a text file with one example in each line?"));
  }
  if (end_ == buffer_.size()) buffer_.resize(std::min(2 * buffer_.size(), kMaxLineBytes + 1));
  const std::span room(reinterpret_cast<uint8_t*>(buffer_.data()) + end_, buffer_.size() - end_);
  ASSIGN_OR_RETURN(const size_t count, bytes_.Read(room));
  at_end_ = count < room.size();
  end_ += count;
  return absl::OkStatus();
}

absl::string_view Lines::Take(size_t bytes, size_t with_end) {
  absl::string_view line(buffer_.data() + begin_, bytes);
  begin_ += with_end;
  if (++number_ == 1) line = absl::StripPrefix(line, kByteOrderMark);
  return absl::StripSuffix(line, "\r");
}

absl::StatusOr<bool> Lines::Next(absl::string_view& line) {
  size_t searched = 0;
  while (true) {
    const absl::string_view rest(buffer_.data() + begin_, end_ - begin_);
    const size_t newline = rest.find('\n', searched);
    if (newline != absl::string_view::npos) {
      line = Take(newline, newline + 1);
      return true;
    }
    if (at_end_) {
      const bool more = !rest.empty();
      if (more) line = Take(rest.size(), rest.size());
      return more;
    }
    searched = rest.size();
    RETURN_IF_ERROR(Fill());
  }
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
