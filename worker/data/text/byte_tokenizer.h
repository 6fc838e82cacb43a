// Treats each byte of a text as a token, so the vocabulary has 256 tokens. Nothing is read in
// advance.
#pragma once

#include <numeric>
#include <utility>

#include "worker/data/text/tokenizer.h"

namespace leeway {

class ByteTokenizer final : public Tokenizer {
 public:
  uint32_t vocabulary() const override { return 256; }
  absl::StatusOr<Tokens> Encode(MappedFile file) const override {
    Tokens::ByteNumbers numbers;
    std::iota(numbers.begin(), numbers.end(), 0);
    return Tokens(std::move(file.content), numbers);
  }
};

}  // namespace leeway
