// Checksums as headers of S3 have them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace leeway {

// Lower-case hexadecimal (x-amz-content-sha256).
std::string PayloadSha256(std::span<const uint8_t> body);
// Base64 (Content-MD5). Empty where this host's OpenSSL has no MD5.
std::string PayloadMd5(std::span<const uint8_t> body);

}  // namespace leeway
