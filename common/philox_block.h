// One Philox4x32-10 block (common/philox.h names the paper), for hosts and GPUs.
#pragma once

#include <cstdint>

#include "common/host_device.h"

namespace leeway {

// Replaces the counter `c` with the four words of its block. The key is (k0, k1).
LEEWAY_HOST_DEVICE inline void PhiloxRounds(uint32_t (&c)[4], uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * c[2];
    c[0] = static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0;
    c[1] = static_cast<uint32_t>(b);
    c[2] = static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1;
    c[3] = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

}  // namespace leeway
