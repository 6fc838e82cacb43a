// Text as UTF-8 characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/text/tokenizer.h"

namespace leeway {

// The characters of texts.
class CharacterSet {
 public:
  CharacterSet();
  // INVALID_ARGUMENT, with the place, where `text` is not UTF-8.
  absl::Status Add(const std::string& path, std::string_view text);
  // Code points, ascending.
  std::vector<uint32_t> Sorted() const;

 private:
  // A flag for each code point.
  std::vector<bool> seen_;
};

// A token's number is its place among the characters of the vocabulary, by code point.
class CharacterTokenizer final : public Tokenizer {
 public:
  // `vocabulary_file`: where the characters are from, for errors; empty: the training files.
  CharacterTokenizer(const CharacterSet& characters, std::string vocabulary_file);

  uint32_t vocabulary() const override { return vocabulary_; }
  absl::StatusOr<Tokens> Encode(MappedFile file) const override;

 private:
  absl::Status Unknown(const MappedFile& file, size_t at, uint32_t code) const;
  absl::StatusOr<Tokens> EncodeBytes(MappedFile file) const;

  const std::string vocabulary_file_;
  uint32_t vocabulary_ = 0;
  // By code point, up to the largest; kNone for what is not in the vocabulary.
  std::vector<uint32_t> numbers_;
};

}  // namespace leeway
