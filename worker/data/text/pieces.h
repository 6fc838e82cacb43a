// GPT-2's cut of a text into pieces, each of which is encoded by itself.
#pragma once

#include <cstddef>
#include <string_view>

#include <re2/re2.h>

namespace leeway {

// By the expression of Radford et al. 2019 (encoder.py of GPT-2):
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Immutable, so thread-safe.
class PieceCutter {
 public:
  PieceCutter();
  // Where the piece ends that begins at byte `at` (below text.size()) of `text`, which is UTF-8.
  size_t EndOf(std::string_view text, size_t at) const;
  // The expression, as other files of tokenizers may have it.
  static std::string_view Expression();

 private:
  const RE2 piece_;
  const RE2 white_;
};

}  // namespace leeway
