// Byte-pair encoding (Sennrich, Haddow, Birch 2016, arXiv:1508.07909) over bytes, as in GPT-2
// (Radford et al. 2019).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

// The tables as they are in the files. Tokens are in GPT-2's alphabet, in which each byte is a
// printable character.
struct BytePairTables {
  // The tokens, each with its number.
  std::vector<std::pair<std::string, uint64_t>> tokens;
  // Pairs of tokens that merge into one token, in order of priority. Errors call their place
  // `merges_place`.
  std::vector<std::pair<std::string, std::string>> merges;
  std::string merges_place;
  // The numbers of special tokens, which the encoder does not search for in texts.
  std::vector<uint64_t> special;
};

// Immutable.
class BytePairs {
 public:
  // Returns INVALID_ARGUMENT, naming the token or the merge, if the tables do not match.
  static absl::StatusOr<BytePairs> Create(const BytePairTables& tables);

  // Returns the largest number of a token, plus 1.
  uint32_t vocabulary() const { return vocabulary_; }
  // Returns true if the byte is a token, so that texts with it can be encoded.
  bool knows(uint8_t byte) const { return bytes_[byte] != kNone; }
  // Appends the tokens of `piece` to `out`. All bytes of `piece` must be known. Repeatedly merges
  // the pair of neighbours whose merge has the highest priority, and of several such pairs the
  // leftmost one, until no pair can be merged. The time is O(n log n).
  void Encode(std::string_view piece, std::vector<uint32_t>& out) const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  struct Merge {
    uint32_t rank;
    uint32_t token;
  };
  struct Symbol;
  class Merging;

  BytePairs() { bytes_.fill(kNone); }
  const Merge* Find(uint32_t left, uint32_t right) const;

  uint32_t vocabulary_ = 0;
  std::array<uint32_t, 256> bytes_;
  // The merges, with the key left << 32 | right.
  std::unordered_map<uint64_t, Merge> merges_;
};

}  // namespace leeway
