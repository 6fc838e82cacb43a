#include "worker/data/text/tokens.h"

#include <utility>

#include "common/status.h"
#include "worker/data/limits.h"

namespace leeway {

TokenNumbers::TokenNumbers(uint32_t vocabulary) : wide_(vocabulary > 0x10000) {}

void TokenNumbers::Trim() {
  numbers16_.shrink_to_fit();
  numbers32_.shrink_to_fit();
}

absl::Status TooManyTokens(const std::string& path) {
  return absl::ResourceExhaustedError(
      absl::StrCat(path, ": its tokens need more than the ", kMaxDatasetBytes,
                   " bytes of memory that a source may use; to use less memory, divide the file "
                   "into several files and use the partition by_file, or set unit: bytes"));
}

Tokens::Tokens(FileContent bytes, const ByteNumbers& numbers)
    : tokens_(ByteTokens{std::move(bytes), numbers}) {}

Tokens::Tokens(TokenNumbers numbers) : tokens_(std::move(numbers)) {}

size_t Tokens::size() const {
  if (const auto* numbers = std::get_if<TokenNumbers>(&tokens_)) return numbers->size();
  return std::get<ByteTokens>(tokens_).content.bytes().size();
}

uint64_t Tokens::bytes() const {
  if (const auto* numbers = std::get_if<TokenNumbers>(&tokens_)) return numbers->bytes();
  return std::get<ByteTokens>(tokens_).content.held();
}

void Tokens::Copy(size_t first, size_t count, float* out) const {
  if (const auto* numbers = std::get_if<TokenNumbers>(&tokens_)) {
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>((*numbers)[first + i]);
    return;
  }
  const auto& [content, numbers] = std::get<ByteTokens>(tokens_);
  const char* const bytes = content.bytes().data() + first;
  for (size_t i = 0; i < count; ++i) out[i] = numbers[static_cast<uint8_t>(bytes[i])];
}

}  // namespace leeway
