#include "common/utf8.h"

#include "absl/strings/str_cat.h"
#include "common/printable.h"

namespace leeway {

Utf8Character FirstCharacter(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code = lead & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {};
  return {code, bytes};
}

absl::Status CheckPathIsUtf8(const std::string& path) {
  for (absl::string_view rest = path; !rest.empty();) {
    const Utf8Character first = FirstCharacter(rest);
    if (first.bytes == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the path '", Printable(path), "' is not UTF-8: rename the folder, or take another"));
    }
    rest.remove_prefix(first.bytes);
  }
  return absl::OkStatus();
}

}  // namespace leeway
