// Digests of bytes, as strings.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace leeway {

// A digest that is computed piece by piece. Not thread-safe.
class Digest {
 public:
  static Digest Sha256();
  // Makes an MD5. If this host's OpenSSL has no MD5, the digest is an empty string.
  static Digest Md5();

  Digest& Update(std::span<const uint8_t> bytes);
  // Return the digest of all bytes so far, in lower-case hexadecimal or in Base64. No other call of
  // this object may follow.
  std::string Hex();
  std::string Base64();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  // `algorithm` is an EVP_MD of OpenSSL.
  explicit Digest(const void* algorithm);
  std::string Bytes();

  // Null if OpenSSL does not have the algorithm.
  std::unique_ptr<void, Free> context_;
};

}  // namespace leeway
