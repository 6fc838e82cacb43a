#include "common/object_store/digests.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "common/files/sha256.h"

namespace leeway {

std::string PayloadSha256(std::span<const uint8_t> body) {
  Sha256 digest;
  digest.Update(body);
  return digest.Hex();
}

std::string PayloadMd5(std::span<const uint8_t> body) {
  unsigned char digest[EVP_MAX_MD_SIZE] = {};
  unsigned int size = 0;
  if (EVP_Digest(body.data(), body.size(), digest, &size, EVP_md5(), nullptr) != 1) return "";
  return absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace leeway
