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

// The tables as they are in the files: in GPT-2's alphabet, in which each byte is a printable
// character.
struct BytePairTables {
  // The number of each token.
  std::vector<std::pair<std::string, uint64_t>> tokens;
  // Pairs of tokens that merge into one, in order of priority. `merges_place` names their place in
  // errors.
  std::vector<std::pair<std::string, std::string>> merges;
  std::string merges_place;
  // The numbers of special tokens, which are not searched for in texts.
  std::vector<uint64_t> special;
};

// Immutable.
class BytePairs {
 public:
  // INVALID_ARGUMENT for tables that do not match; it names the token or the merge.
  static absl::StatusOr<BytePairs> Create(const BytePairTables& tables);

  // The largest number of a token, plus 1.
  uint32_t vocabulary() const { return vocabulary_; }
  // Whether the byte is a token, so that texts with it can be encoded.
  bool knows(uint8_t byte) const { return bytes_[byte] != kNone; }
  // Appends the tokens of `piece` to `out`. All its bytes must be known. The pair of neighbours
  // whose merge comes first is merged, the leftmost one if there are several, until no pair can be
  // merged. Takes O(n log n).
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
  // The merges, by left << 32 | right.
  std::unordered_map<uint64_t, Merge> merges_;
};

}  // namespace leeway
