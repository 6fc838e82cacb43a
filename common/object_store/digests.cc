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

void Md5::Free::operator()(void* context) const {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

Md5::Md5() : context_(EVP_MD_CTX_new()) {
  auto* const context = static_cast<EVP_MD_CTX*>(context_.get());
  if (context == nullptr || EVP_DigestInit_ex(context, EVP_md5(), nullptr) != 1) context_.reset();
}

void Md5::Update(std::span<const uint8_t> bytes) {
  if (context_ == nullptr) return;
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size());
}

std::string Md5::Hex() {
  if (context_ == nullptr) return "";
  unsigned char digest[EVP_MAX_MD_SIZE] = {};
  unsigned int size = 0;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), digest, &size);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace leeway
