#include "bench/raw/cipher_rate.h"

#include <chrono>
#include <memory>
#include <vector>

#include <openssl/evp.h>

#include "common/clock.h"
#include "common/security/openssl.h"

namespace leeway {
namespace {

constexpr int kRecordBytes = 16 << 10;
constexpr int kTagBytes = 16;
constexpr Duration kLasting = std::chrono::milliseconds(200);

using ContextPtr = std::unique_ptr<EVP_CIPHER_CTX, FreedBy<EVP_CIPHER_CTX_free>>;

// Encrypts record `number`, with a nonce made from the number.
bool Encrypt(EVP_CIPHER_CTX* context, const std::vector<unsigned char>& plain, uint64_t number,
             std::vector<unsigned char>& sealed) {
  unsigned char nonce[12] = {};
  for (int i = 0; i < 8; ++i) nonce[i] = static_cast<unsigned char>(number >> (8 * i));
  int length = 0;
  unsigned char* const tag = sealed.data() + kRecordBytes;
  return EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce) == 1 &&
         EVP_EncryptUpdate(context, sealed.data(), &length, plain.data(), kRecordBytes) == 1 &&
         EVP_EncryptFinal_ex(context, tag, &length) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kTagBytes, tag) == 1;
}

}  // namespace

double CipherRate() {
  const ContextPtr context(EVP_CIPHER_CTX_new());
  const unsigned char key[32] = {1};
  const std::vector<unsigned char> plain(kRecordBytes, 7);
  std::vector<unsigned char> sealed(kRecordBytes + kTagBytes);
  if (EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key, nullptr) != 1) return 0;
  const Time begun = std::chrono::steady_clock::now();
  uint64_t records = 0;
  Duration took{};
  while (took < kLasting) {
    if (!Encrypt(context.get(), plain, records++, sealed)) return 0;
    took = std::chrono::steady_clock::now() - begun;
  }
  return static_cast<double>(records * kRecordBytes) / Seconds(took);
}

}  // namespace leeway
