#include "common/files/sha256.h"

#include <bit>
#include <new>

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "common/files/files.h"

namespace leeway {

static_assert(std::endian::native == std::endian::little);

void Sha256::Free::operator()(void* context) const {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

// These calls fail for want of memory only.
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr ||
      EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_.get()), EVP_sha256(), nullptr) != 1) {
    throw std::bad_alloc();
  }
}

void Sha256::Update(std::span<const uint8_t> bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size());
}

std::string Sha256::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE] = {};
  unsigned int size = 0;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), digest, &size);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string HexSha256(std::string_view bytes) {
  Sha256 digest;
  digest.Update(BytesOf(bytes));
  return digest.Hex();
}

std::string WeightsSha256(std::span<const float> weights) {
  Sha256 digest;
  digest.Update(BytesOf(weights));
  return digest.Hex();
}

}  // namespace leeway
