#include "worker/data/text/character_tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/status.h"
#include "worker/data/limits.h"
#include "worker/data/text/utf8.h"

namespace leeway {
namespace {

constexpr uint32_t kNone = 0xffffffff;
constexpr uint32_t kAsciiEnd = 0x80;

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

}  // namespace

CharacterSet::CharacterSet() : seen_(kCodePoints, false) {}

absl::Status CharacterSet::Add(const std::string& path, std::string_view text) {
  bool ascii[kAsciiEnd] = {};
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte < kAsciiEnd) {
      ascii[byte] = true;
      ++at;
      continue;
    }
    const std::optional<Character> character = FirstCharacter(text.substr(at));
    if (!character.has_value()) return NotUtf8(path, text, at);
    seen_[character->code] = true;
    at += character->bytes;
  }
  for (uint32_t code = 0; code < kAsciiEnd; ++code) {
    if (ascii[code]) seen_[code] = true;
  }
  return absl::OkStatus();
}

std::vector<uint32_t> CharacterSet::Sorted() const {
  std::vector<uint32_t> codes;
  for (uint32_t code = 0; code < kCodePoints; ++code) {
    if (seen_[code]) codes.push_back(code);
  }
  return codes;
}

CharacterTokenizer::CharacterTokenizer(const CharacterSet& characters, std::string vocabulary_file)
    : vocabulary_file_(std::move(vocabulary_file)) {
  for (const uint32_t code : characters.Sorted()) {
    numbers_.resize(code + 1, kNone);
    numbers_[code] = vocabulary_++;
  }
  numbers_.resize(std::max<size_t>(numbers_.size(), kAsciiEnd), kNone);
}

absl::Status CharacterTokenizer::Unknown(const MappedFile& file, size_t at, uint32_t code) const {
  const std::string_view text = file.content.bytes();
  const bool named = !vocabulary_file_.empty();
  return absl::InvalidArgumentError(absl::StrCat(
      PlaceInText(file.path, text, at), ": the character ", DescribeCharacter(code), " is not in ",
      named ? absl::StrCat("the vocabulary ", vocabulary_file_, ": add it there")
            : "the training files, whose characters are the vocabulary: set `vocabulary` to a "
              "text that has all characters"));
}

absl::StatusOr<Tokens> CharacterTokenizer::EncodeBytes(MappedFile file) const {
  const std::string_view text = file.content.bytes();
  Tokens::ByteNumbers numbers{};
  bool known[256] = {};
  for (uint32_t code = 0; code < kAsciiEnd; ++code) {
    known[code] = numbers_[code] != kNone;
    // The number fits into a byte: it is below 128, because only ASCII characters come before this
    // character.
    if (known[code]) numbers[code] = static_cast<uint8_t>(numbers_[code]);
  }
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (!known[byte]) return Unknown(file, at, byte);
  }
  return Tokens(std::move(file.content), numbers);
}

absl::StatusOr<Tokens> CharacterTokenizer::Encode(MappedFile file) const {
  const std::string_view text = file.content.bytes();
  if (IsAscii(text)) return EncodeBytes(std::move(file));
  TokenNumbers tokens(vocabulary_);
  for (size_t at = 0; at < text.size();) {
    const std::optional<Character> character = FirstCharacter(text.substr(at));
    if (!character.has_value()) return NotUtf8(file.path, text, at);
    const uint32_t code = character->code;
    const uint32_t number = code < numbers_.size() ? numbers_[code] : kNone;
    if (number == kNone) return Unknown(file, at, code);
    tokens.Push(number);
    if (tokens.bytes() > kMaxDatasetBytes) return TooManyTokens(file.path);
    at += character->bytes;
  }
  tokens.Trim();
  return Tokens(std::move(tokens));
}

}  // namespace leeway
