#include "common/files/digest.h"

#include <new>

#include <openssl/evp.h>

#include "absl/strings/escaping.h"

namespace leeway {
namespace {

EVP_MD_CTX* ContextOf(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

void Digest::Free::operator()(void* context) const { EVP_MD_CTX_free(ContextOf(context)); }

Digest::Digest(const void* algorithm) : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) throw std::bad_alloc();
  const auto* const chosen = static_cast<const EVP_MD*>(algorithm);
  if (EVP_DigestInit_ex(ContextOf(context_.get()), chosen, nullptr) != 1) context_.reset();
}

Digest Digest::Md5() { return Digest(EVP_md5()); }

Digest Digest::Sha256() {
  Digest digest(EVP_sha256());
  // Every build of OpenSSL has SHA-256, so only a lack of memory can be the reason.
  if (digest.context_ == nullptr) throw std::bad_alloc();
  return digest;
}

Digest& Digest::Update(std::span<const uint8_t> bytes) {
  if (context_ != nullptr) {
    EVP_DigestUpdate(ContextOf(context_.get()), bytes.data(), bytes.size());
  }
  return *this;
}

std::string Digest::Bytes() {
  if (context_ == nullptr) return "";
  unsigned char digest[EVP_MAX_MD_SIZE] = {};
  unsigned int size = 0;
  EVP_DigestFinal_ex(ContextOf(context_.get()), digest, &size);
  return {reinterpret_cast<const char*>(digest), size};
}

std::string Digest::Hex() { return absl::BytesToHexString(Bytes()); }

std::string Digest::Base64() { return absl::Base64Escape(Bytes()); }

}  // namespace leeway
