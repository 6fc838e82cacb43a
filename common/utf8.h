// Texts that are UTF-8, and those that are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

struct Utf8Character {
  uint32_t code = 0;
  // 0: the text's next byte begins none.
  size_t bytes = 0;
};
// Of a text that is not empty, in its shortest form.
Utf8Character FirstCharacter(absl::string_view text);

// INVALID_ARGUMENT unless the path is UTF-8, as what messages carry must be.
absl::Status CheckPathIsUtf8(const std::string& path);

}  // namespace leeway
