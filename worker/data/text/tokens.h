// A text as a sequence of token numbers.
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

// Token numbers in memory. A number takes two bytes if the vocabulary is small enough.
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

// Returns the RESOURCE_EXHAUSTED error for tokens of `path` that need more than kMaxDatasetBytes of
// memory.
absl::Status TooManyTokens(const std::string& path);

// Immutable.
class Tokens {
 public:
  // The number of each byte's token.
  using ByteNumbers = std::array<uint8_t, 256>;

  // Makes tokens of bytes, where each byte is a token. Numbers are looked up when tokens are
  // copied, so a mapped file stays on disk.
  Tokens(FileContent bytes, const ByteNumbers& numbers);
  explicit Tokens(TokenNumbers numbers);

  size_t size() const;
  // Returns the number of bytes of memory that the tokens occupy.
  uint64_t bytes() const;
  // Copies the tokens [first, first + count), which must be below size(), to out[0, count).
  void Copy(size_t first, size_t count, float* out) const;

 private:
  struct ByteTokens {
    FileContent content;
    ByteNumbers numbers;
  };
  std::variant<ByteTokens, TokenNumbers> tokens_;
};

}  // namespace leeway
