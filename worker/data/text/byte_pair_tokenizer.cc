#include "worker/data/text/byte_pair_tokenizer.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "worker/data/limits.h"
#include "worker/data/text/utf8.h"

namespace leeway {
namespace {

// The number of pieces whose tokens are remembered, and the largest number of bytes of such a
// piece. This saves time, because texts repeat their words.
constexpr size_t kRememberedPieces = 1 << 16;
constexpr size_t kRememberedBytes = 64;

}  // namespace

absl::Status BytePairTokenizer::CheckBytes(const MappedFile& file) const {
  const std::string_view text = file.content.bytes();
  RETURN_IF_ERROR(CheckUtf8(file.path, text));
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (pairs_.knows(byte)) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: byte 0x%02x is not a token of the vocabulary: name a vocabulary that "
                        "has all 256 bytes",
                        PlaceInText(file.path, text, at), byte));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tokens> BytePairTokenizer::Encode(MappedFile file) const {
  RETURN_IF_ERROR(CheckBytes(file));
  const std::string_view text = file.content.bytes();
  TokenNumbers tokens(vocabulary());
  std::unordered_map<std::string_view, std::vector<uint32_t>> remembered;
  std::vector<uint32_t> encoded;
  for (size_t at = 0; at < text.size();) {
    const size_t end = cutter_.EndOf(text, at);
    const std::string_view piece = text.substr(at, end - at);
    at = end;
    const auto known = remembered.find(piece);
    if (known == remembered.end()) {
      encoded.clear();
      pairs_.Encode(piece, encoded);
      if (remembered.size() == kRememberedPieces) remembered.clear();
      if (piece.size() <= kRememberedBytes) remembered.emplace(piece, encoded);
    }
    for (const uint32_t token : known == remembered.end() ? encoded : known->second) {
      tokens.Push(token);
    }
    if (tokens.bytes() > kMaxDatasetBytes) return TooManyTokens(file.path);
  }
  tokens.Trim();
  return Tokens(std::move(tokens));
}

}  // namespace leeway
