// Checksums as headers of S3 have them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace leeway {

// Lower-case hexadecimal (x-amz-content-sha256).
std::string PayloadSha256(std::span<const uint8_t> body);
// Base64 (Content-MD5). Empty where this host's OpenSSL has no MD5.
std::string PayloadMd5(std::span<const uint8_t> body);

// An MD5 in the making. Not thread-safe.
class Md5 {
 public:
  Md5();
  void Update(std::span<const uint8_t> bytes);
  // Of everything so far, in lower-case hexadecimal; no other call may follow. Empty where this
  // host's OpenSSL has no MD5.
  std::string Hex();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  // Null without MD5.
  std::unique_ptr<void, Free> context_;
};

}  // namespace leeway
