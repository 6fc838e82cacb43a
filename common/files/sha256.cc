#include "common/files/sha256.h"

#include <bit>

#include "common/files/digest.h"
#include "common/files/files.h"

namespace leeway {

static_assert(std::endian::native == std::endian::little);

std::string HexSha256(std::string_view bytes) {
  return Digest::Sha256().Update(BytesOf(bytes)).Hex();
}

std::string WeightsSha256(std::span<const float> weights) {
  return Digest::Sha256().Update(BytesOf(weights)).Hex();
}

}  // namespace leeway
