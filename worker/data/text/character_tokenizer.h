// Splits text into UTF-8 characters as tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/text/tokenizer.h"

namespace leeway {

// The set of characters that occur in texts.
class CharacterSet {
 public:
  CharacterSet();
  // Adds the characters of `text`, the content of the file `path`. INVALID_ARGUMENT, with the
  // place, if it is not UTF-8.
  absl::Status Add(const std::string& path, std::string_view text);
  // The code points of the set, ascending.
  std::vector<uint32_t> Sorted() const;

 private:
  // A flag for each code point.
  std::vector<bool> seen_;
};

// The number of a token is its index among the characters of the vocabulary, ordered by code point.
class CharacterTokenizer final : public Tokenizer {
 public:
  // `vocabulary_file` is the file that the characters are from, for errors. Empty: the training
  // files.
  CharacterTokenizer(const CharacterSet& characters, std::string vocabulary_file);

  uint32_t vocabulary() const override { return vocabulary_; }
  absl::StatusOr<Tokens> Encode(MappedFile file) const override;

 private:
  absl::Status Unknown(const MappedFile& file, size_t at, uint32_t code) const;
  absl::StatusOr<Tokens> EncodeBytes(MappedFile file) const;

  const std::string vocabulary_file_;
  uint32_t vocabulary_ = 0;
  // The number of each code point up to the largest in the vocabulary; kNone for those that are not
  // in it.
  std::vector<uint32_t> numbers_;
};

}  // namespace leeway
