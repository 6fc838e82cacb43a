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
  // Makes an empty token, which nothing matches.
  Token() = default;
  // Returns INVALID_ARGUMENT, naming `source`, unless the text is 16 to 4096 visible ASCII
  // characters. Spaces and line ends around the token are ignored.
  static absl::StatusOr<Token> Parse(absl::string_view text, absl::string_view source);
  // Reads the tokens in a file, one on each line. There must be one token, or two while the job
  // changes its token. Otherwise returns INVALID_ARGUMENT, naming the file.
  static absl::StatusOr<std::vector<Token>> ReadFrom(const std::string& file);
  // Returns a token of 256 random bits. Returns UNAVAILABLE if the system has no random numbers.
  static absl::StatusOr<Token> Draw();

  bool operator==(const Token&) const = default;
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  // Returns the metadata that a call carries: "Bearer TOKEN" (RFC 6750, section 2.1).
  std::string Authorization() const;
  // Returns whether `authorization` is equal to Authorization(). Takes the same time for all
  // strings of the same length.
  bool Matches(absl::string_view authorization) const;

 private:
  explicit Token(std::string text);

  std::string text_;
  std::array<uint8_t, 32> digest_{};
};

}  // namespace leeway
