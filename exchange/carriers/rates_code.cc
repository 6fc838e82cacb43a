#include "exchange/carriers/rates_code.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

namespace leeway {
namespace {

// Set in digests. A factor is not negative, so the bit of its sign is free.
constexpr uint64_t kDigest = uint64_t{1} << 63;

// Continues a digest with a word (FNV-1a, of 64 bits).
uint64_t WithWord(uint64_t digest, uint64_t word) {
  for (int shift = 0; shift < 64; shift += 8) {
    digest = (digest ^ (word >> shift & 0xff)) * 0x100000001b3;
  }
  return digest;
}

}  // namespace

uint64_t CodeOf(const ContributionRates& rates) {
  if (rates == nullptr || rates->empty()) return std::bit_cast<uint64_t>(1.0);
  const UpdatePart& first = rates->front();
  const bool uniform = std::ranges::all_of(
      *rates, [&](const UpdatePart& part) { return !part.skip && part.rate == first.rate; });
  if (uniform) return std::bit_cast<uint64_t>(first.rate);
  uint64_t digest = 0xcbf29ce484222325;
  for (const UpdatePart& part : *rates) {
    digest = WithWord(digest, part.end);
    digest = WithWord(digest, part.skip ? kDigest : std::bit_cast<uint64_t>(part.rate));
  }
  return digest | kDigest;
}

std::optional<ContributionRates> RatesOf(uint64_t code, uint64_t trained) {
  if ((code & kDigest) != 0) return std::nullopt;
  return std::make_shared<const std::vector<UpdatePart>>(
      std::vector<UpdatePart>{{.end = trained, .rate = std::bit_cast<double>(code)}});
}

}  // namespace leeway
