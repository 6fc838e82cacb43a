#include "worker/data/text/utf8.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace leeway {
namespace {

uint8_t ByteAt(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

bool IsControl(uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

}  // namespace

std::string Utf8(uint32_t code) {
  const auto tail = [code](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

std::string DescribeCharacter(uint32_t code) {
  if (IsControl(code)) return absl::StrFormat("U+%04X", code);
  return absl::StrFormat("'%s' (U+%04X)", Utf8(code), code);
}

std::string PlaceInText(const std::string& path, std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const std::string_view line =
      newline == std::string_view::npos ? before : before.substr(newline + 1);
  const auto characters =
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
  return absl::StrCat(path, ":", lines + 1, ":", characters + 1);
}

absl::Status NotUtf8(const std::string& path, std::string_view text, size_t at) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: byte %d (0x%02x) is not UTF-8: convert the file (iconv -t UTF-8), or set unit: bytes",
      PlaceInText(path, text, at), at, ByteAt(text, at)));
}

absl::Status CheckUtf8(const std::string& path, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (ByteAt(text, at) < 0x80) {
      ++at;
      continue;
    }
    const std::optional<Character> character = FirstCharacter(text.substr(at));
    if (!character.has_value()) return NotUtf8(path, text, at);
    at += character->bytes;
  }
  return absl::OkStatus();
}

}  // namespace leeway
