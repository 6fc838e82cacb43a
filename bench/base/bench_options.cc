#include "bench/base/bench_options.h"

#include <cctype>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

constexpr uint64_t kLargest = uint64_t{1} << 40;
constexpr uint64_t kBlockBytesMax = 64 << 20;

// Reads a whole number, and a letter that multiplies it by a power of `thousand`.
absl::StatusOr<uint64_t> ParseScaled(const std::string& text, uint64_t thousand) {
  std::string_view digits = text;
  uint64_t factor = 1;
  if (!digits.empty()) {
    const auto letter =
        std::string_view("KMG").find(static_cast<char>(std::toupper(digits.back())));
    if (letter != std::string_view::npos) {
      for (size_t i = 0; i <= letter; ++i) factor *= thousand;
      digits.remove_suffix(1);
    }
  }
  uint64_t number = 0;
  const bool plain = digits.find_first_not_of("0123456789") == std::string_view::npos;
  const bool good = plain &&
                    absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &number) &&
                    number > 0 && number <= kLargest / factor;
  if (good) return number * factor;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "': needs a whole number from 1 to ",
                                                 kLargest, ", such as 4096, 64K, 1M or 2G"));
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(const std::string& text) { return ParseScaled(text, 1024); }

absl::StatusOr<uint64_t> ParseBlockBytes(const std::string& text) {
  ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
  if (bytes % 64 == 0 && bytes <= kBlockBytesMax) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': the bytes of a block must be a multiple of 64, at most 64M"));
}

absl::StatusOr<uint64_t> ParseCount(const std::string& text) { return ParseScaled(text, 1000); }

}  // namespace leeway
