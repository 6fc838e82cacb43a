// Cuts a text into pieces by GPT-2's rules. Each piece is encoded separately.
#pragma once

#include <cstddef>
#include <string_view>

#include <re2/re2.h>

namespace leeway {

// Cuts a text by the expression of Radford et al. 2019 (encoder.py of GPT-2):
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Immutable, so thread-safe.
class PieceCutter {
 public:
  PieceCutter();
  // Returns the end of the piece that begins at byte `at` (below text.size()) of `text`, which must
  // be UTF-8.
  size_t EndOf(std::string_view text, size_t at) const;
  // Returns the expression in the form in which files of other tokenizers may have it.
  static std::string_view Expression();

 private:
  const RE2 piece_;
  const RE2 white_;
};

}  // namespace leeway
