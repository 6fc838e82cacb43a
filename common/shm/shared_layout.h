// The first page of a SharedArena, as both its owner and the peer use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leeway {

inline constexpr uint64_t kSharedPageBytes = 4096;

struct SharedHeader {
  static constexpr size_t kSessions = kSharedPageBytes / sizeof(uint64_t) - 1;

  uint64_t nonce;
  std::atomic<uint64_t> sessions[kSessions];

  static bool IsSession(uint64_t offset) {
    return offset % sizeof(uint64_t) == 0 && offset >= sizeof(uint64_t) &&
           offset < kSharedPageBytes;
  }
  // Convert between the offset of a session and its index. `offset` must satisfy IsSession.
  static size_t SessionIndex(uint64_t offset) { return offset / sizeof(uint64_t) - 1; }
  static uint64_t SessionOffset(size_t index) { return (index + 1) * sizeof(uint64_t); }
};

// The atomics must be lock-free, because two processes use them, and the peer can only read the
// page.
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));
static_assert(sizeof(SharedHeader) == kSharedPageBytes);

}  // namespace leeway
