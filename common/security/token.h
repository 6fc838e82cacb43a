// The secret that all processes of a job share.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

class Token {
 public:
  // None: nothing matches it.
  Token() = default;
  // `source` is for the error: INVALID_ARGUMENT unless the text is 16 to 4096 visible ASCII
  // characters. Spaces and line ends around it do not belong to it.
  static absl::StatusOr<Token> Parse(absl::string_view text, absl::string_view source);
  // Of a file, a line each: one, or two while the token changes. INVALID_ARGUMENT names the file.
  static absl::StatusOr<std::vector<Token>> ReadFrom(const std::string& file);
  // 256 random bits. UNAVAILABLE if the system has none.
  static absl::StatusOr<Token> Draw();

  bool operator==(const Token&) const = default;
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  // What a call brings: "Bearer TOKEN" (RFC 6750, section 2.1).
  std::string Authorization() const;
  // Whether `authorization` is that. Takes as long for every text of the same length.
  bool Matches(absl::string_view authorization) const;

 private:
  explicit Token(std::string text);

  std::string text_;
  std::array<uint8_t, 32> digest_{};
};

}  // namespace leeway
