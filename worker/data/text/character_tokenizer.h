// Splits a text into its characters, which are the tokens. The text is UTF-8.
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
  // Adds the characters of `text`, the content of the file `path`. Returns INVALID_ARGUMENT, with
  // the place, if `text` is not UTF-8.
  absl::Status Add(const std::string& path, std::string_view text);
  // Returns the code points of the set, in ascending order.
  std::vector<uint32_t> Sorted() const;

 private:
  // For each code point, whether the set has it.
  std::vector<bool> seen_;
};

// The number of a token is its index among the characters of the vocabulary, which are ordered by
// code point.
class CharacterTokenizer final : public Tokenizer {
 public:
  // Makes a tokenizer. `vocabulary_file` names the file with the characters in errors. It is empty
  // if the characters come from the training files.
  CharacterTokenizer(const CharacterSet& characters, std::string vocabulary_file);

  uint32_t vocabulary() const override { return vocabulary_; }
  absl::StatusOr<Tokens> Encode(MappedFile file) const override;

 private:
  absl::Status Unknown(const MappedFile& file, size_t at, uint32_t code) const;
  absl::StatusOr<Tokens> EncodeBytes(MappedFile file) const;

  const std::string vocabulary_file_;
  uint32_t vocabulary_ = 0;
  // The number of each code point up to the largest code point in the vocabulary. The number is
  // kNone for code points that are not in the vocabulary.
  std::vector<uint32_t> numbers_;
};

}  // namespace leeway
