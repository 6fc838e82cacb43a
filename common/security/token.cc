#include "common/security/token.h"

#include <algorithm>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/counted.h"
#include "common/files/files.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr size_t kBytesMin = 16;
constexpr size_t kBytesMax = 4096;
constexpr size_t kTokensMax = 2;
constexpr absl::string_view kScheme = "Bearer ";

std::array<uint8_t, SHA256_DIGEST_LENGTH> DigestOf(absl::string_view text) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(), digest.data());
  return digest;
}

}  // namespace

Token::Token(std::string text) : text_(std::move(text)), digest_(DigestOf(Authorization())) {}

absl::StatusOr<Token> Token::Parse(absl::string_view text, absl::string_view source) {
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  const bool visible = std::all_of(token.begin(), token.end(), absl::ascii_isgraph);
  if (!visible || token.size() < kBytesMin || token.size() > kBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": a token has ", kBytesMin, " to ", kBytesMax,
                     " visible ASCII characters; this one has ",
                     visible ? absl::StrCat(token.size()) : "other characters",
                     "; 'openssl rand -hex 32' makes one"));
  }
  return Token(std::string(token));
}

absl::StatusOr<std::vector<Token>> Token::ReadFrom(const std::string& file) {
  const auto text = ReadFile(file, (kTokensMax + 1) * kBytesMax);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  std::vector<Token> tokens;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipWhitespace())) {
    ASSIGN_OR_RETURN(Token token, Parse(line, file));
    tokens.push_back(std::move(token));
  }
  if (!tokens.empty() && tokens.size() <= kTokensMax) return tokens;
  return absl::InvalidArgumentError(absl::StrCat(
      file, ": has ", Counted(tokens.size(), "token"),
      "; it must have one token, or two while the token is being changed (the first is sent)"));
}

absl::StatusOr<Token> Token::Draw() {
  std::array<uint8_t, 32> bytes;
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) {
    return absl::UnavailableError("the operating system returned no random numbers for a token");
  }
  return Token(absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
}

std::string Token::Authorization() const { return absl::StrCat(kScheme, text_); }

bool Token::Matches(absl::string_view authorization) const {
  const auto other = DigestOf(authorization);
  return !empty() && CRYPTO_memcmp(other.data(), digest_.data(), digest_.size()) == 0;
}

}  // namespace leeway
