#include "common/utf8.h"

#include "absl/strings/str_cat.h"
#include "common/printable.h"

namespace leeway {
namespace {

// The facts in the first byte of a character: how many bytes the character has, and which bits of
// this byte belong to the code point. If no character begins with this byte, `bytes` is 0.
struct Head {
  size_t bytes;
  uint32_t bits;
  // The smallest code point of this length. Smaller ones have a shorter form.
  uint32_t least;
};

Head HeadOf(uint8_t first) {
  if (first < 0x80) return {1, first, 0};
  if ((first & 0xe0) == 0xc0) return {2, first & 0x1fu, 0x80};
  if ((first & 0xf0) == 0xe0) return {3, first & 0x0fu, 0x800};
  if ((first & 0xf8) == 0xf0) return {4, first & 0x07u, 0x10000};
  return {0, 0, 0};
}

}  // namespace

std::optional<Character> FirstCharacter(std::string_view text) {
  const Head head = HeadOf(static_cast<uint8_t>(text[0]));
  if (head.bytes == 0 || head.bytes > text.size()) return std::nullopt;
  uint32_t code = head.bits;
  for (size_t i = 1; i < head.bytes; ++i) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xc0) != 0x80) return std::nullopt;
    code = code << 6 | (byte & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < head.least || surrogate || code >= kCodePoints) return std::nullopt;
  return Character{code, head.bytes};
}

absl::Status CheckPathIsUtf8(const std::string& path) {
  for (std::string_view rest = path; !rest.empty();) {
    const std::optional<Character> first = FirstCharacter(rest);
    if (!first) {
      return absl::InvalidArgumentError(
          absl::StrCat("the path '", Printable(path),
                       "' is not UTF-8: rename the folder, or use another folder"));
    }
    rest.remove_prefix(first->bytes);
  }
  return absl::OkStatus();
}

}  // namespace leeway
