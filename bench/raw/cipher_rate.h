// How fast one processor encrypts: what TLS costs at least.
#pragma once

namespace leeway {

// Bytes a second with AES-256-GCM in records of 16 KiB, as TLS 1.3 makes them (RFC 8446, section
// 5.1); measured for a fifth of a second. 0 if the library has no such cipher.
double CipherRate();

}  // namespace leeway
