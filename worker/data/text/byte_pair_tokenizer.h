// Splits text into byte-pair tokens.
#pragma once

#include <string_view>
#include <utility>

#include "worker/data/text/byte_pairs.h"
#include "worker/data/text/pieces.h"
#include "worker/data/text/tokenizer.h"

namespace leeway {

// Encodes a whole file at once and keeps its tokens in memory.
class BytePairTokenizer final : public Tokenizer {
 public:
  explicit BytePairTokenizer(BytePairs pairs) : pairs_(std::move(pairs)) {}

  uint32_t vocabulary() const override { return pairs_.vocabulary(); }
  absl::StatusOr<Tokens> Encode(MappedFile file) const override;

 private:
  absl::Status CheckBytes(const MappedFile& file) const;

  const BytePairs pairs_;
  const PieceCutter cutter_;
};

}  // namespace leeway
