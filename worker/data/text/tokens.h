// A text as the numbers of its tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "worker/data/file_content.h"

namespace leeway {

// Token numbers in memory, in two bytes each where the vocabulary allows.
class TokenNumbers {
 public:
  explicit TokenNumbers(uint32_t vocabulary);

  void Push(uint32_t token) {
    if (wide_) {
      numbers32_.push_back(token);
    } else {
      numbers16_.push_back(static_cast<uint16_t>(token));
    }
  }
  uint32_t operator[](size_t i) const { return wide_ ? numbers32_[i] : numbers16_[i]; }
  size_t size() const { return wide_ ? numbers32_.size() : numbers16_.size(); }
  uint64_t bytes() const { return wide_ ? 4 * numbers32_.size() : 2 * numbers16_.size(); }
  void Trim();

 private:
  const bool wide_;
  std::vector<uint16_t> numbers16_;
  std::vector<uint32_t> numbers32_;
};

// Returns RESOURCE_EXHAUSTED: the tokens of `path` are more than kMaxDatasetBytes in memory.
absl::Status TooManyTokens(const std::string& path);

// Immutable.
class Tokens {
 public:
  // The number of each byte's token.
  using ByteNumbers = std::array<uint8_t, 256>;

  // Each byte is a token. Numbers are looked up as tokens are copied, so a mapped file stays on
  // disk.
  Tokens(FileContent bytes, const ByteNumbers& numbers);
  explicit Tokens(TokenNumbers numbers);

  size_t size() const;
  // The memory that the tokens take.
  uint64_t bytes() const;
  // Copies the tokens [first, first + count), which are below size(), to out[0, count).
  void Copy(size_t first, size_t count, float* out) const;

 private:
  struct ByteTokens {
    FileContent content;
    ByteNumbers numbers;
  };
  std::variant<ByteTokens, TokenNumbers> tokens_;
};

}  // namespace leeway
