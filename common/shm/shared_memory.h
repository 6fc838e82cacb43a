// Memory shared by two processes of one host and one user. Its owner makes a SharedArena and tells
// the peer where it is (MemoryOffer). The peer maps it for reading, and after that only offsets are
// sent. The memory has no file and no name. It disappears with the processes, however they end.
//
// The arena begins with a page that contains the offer's nonce and the session words. A session is
// the owner's promise to a peer that named ranges stay unchanged. If the owner has to break the
// promise (a reader is too slow, or is considered dead), it first withdraws the session's number.
// The reader checks the number after its copy, and discards the copy if the number is gone:
//
//   owner: CloseSession (word = 0, sequentially consistent); then writes into the range
//   reader: copies the range; then SessionStands (full fence, reads the word)
//
// This is the reader's half of a sequence lock (Boehm, "Can seqlocks get along with programming
// language memory models?", 2012). If the copy has one byte that was written after CloseSession,
// the fences order the word's zero before the reader's check: the reader sees the zero, or the
// number of a later session, never its own number. The fences are full ones, because weaker ones do
// not order the instructions of memcpy (streaming stores, string instructions). In terms of the
// language the copy races with the writes, as all communication between processes does. It is sound
// because no code uses the copied bytes before the number is checked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "common/descriptor.h"
#include "common/mutex.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// The largest size of an arena, and of a peer's offer. It limits address space, not memory.
inline constexpr uint64_t kSharedBytesMax = uint64_t{1} << 40;

// A session's position in its arena, and the number there while it is open, which is never 0.
struct SharedSession {
  uint64_t offset = 0;
  uint64_t number = 0;
};

// The owner's end. Thread-safe. Lives as long as a reference to it or to its memory exists.
class SharedArena : public std::enable_shared_from_this<SharedArena> {
 public:
  // Reserves room for `bytes` of ranges, which use no memory until they are allocated.
  // INVALID_ARGUMENT beyond kSharedBytesMax; the system's error if it refuses this size.
  static absl::StatusOr<std::shared_ptr<SharedArena>> Create(uint64_t bytes);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  // Allocates a range at a page boundary, with unspecified content. The last reference frees it.
  // Its memory is committed, so touching it cannot fail. RESOURCE_EXHAUSTED if the arena is full or
  // the system has no memory.
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(uint64_t bytes);

  bool Contains(const void* address) const;
  // Returns the offset from the start of the arena. The address must be in the arena.
  uint64_t OffsetOf(const void* address) const;

  // RESOURCE_EXHAUSTED if all 511 session words are in use.
  absl::StatusOr<SharedSession> OpenSession();
  // Closes a session; call it once for each session. After it returns, the owner may overwrite
  // ranges that the session's peer may be reading.
  void CloseSession(const SharedSession& session);

  // Returns what a peer needs for SharedMapping::Map.
  v1::MemoryOffer Offer() const;

 private:
  SharedArena(Descriptor file, std::byte* memory, uint64_t bytes);
  absl::StatusOr<uint64_t> Take(uint64_t bytes, uint64_t& unbacked_from);
  void GiveBack(uint64_t offset, uint64_t bytes, bool backed);
  void GiveBackLocked(uint64_t offset, uint64_t bytes) REQUIRES(mutex_);
  absl::Status Back(uint64_t begin, uint64_t end);

  const Descriptor file_;
  std::byte* const memory_;
  const uint64_t bytes_;
  uint64_t nonce_ = 0;

  mutable Mutex mutex_;
  // Free ranges, from offset to bytes. No two ranges touch.
  std::map<uint64_t, uint64_t> free_ GUARDED_BY(mutex_);
  // Pages from this offset on may not be backed by memory yet.
  uint64_t backed_ GUARDED_BY(mutex_);
  std::vector<uint64_t> free_sessions_ GUARDED_BY(mutex_);
};

// The peer's end: another process's arena, mapped for reading. Thread-safe. Stays readable after
// the owner has ended.
class SharedMapping {
 public:
  // Trusts nothing in the offer. INVALID_ARGUMENT if its size is impossible. NOT_FOUND if the
  // process or file does not exist. PERMISSION_DENIED if the file belongs to another user, or the
  // system forbids access. FAILED_PRECONDITION if the file is not sealed against shrinking, or is
  // not the offered memory.
  static absl::StatusOr<std::shared_ptr<SharedMapping>> Map(const v1::MemoryOffer& offer);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  // Returns the floats of a range; valid as long as the mapping. INVALID_ARGUMENT unless both
  // numbers are multiples of 4 and the range is in the arena, after its first page.
  absl::StatusOr<std::span<const float>> Floats(uint64_t offset, uint64_t bytes) const;

  // Returns `count` words that the owner writes atomically; valid as long as the mapping.
  // INVALID_ARGUMENT unless `offset` is a multiple of 8 and the words are in the arena, after its
  // first page.
  absl::StatusOr<std::span<const std::atomic<uint64_t>>> Words(uint64_t offset,
                                                               uint64_t count) const;

  // True if everything that was copied before this call was copied while the session was open.
  // False for a number that cannot be a session's.
  bool SessionStands(const SharedSession& session) const;

 private:
  SharedMapping(const std::byte* memory, uint64_t bytes) : memory_(memory), bytes_(bytes) {}
  // Whether the range is in the arena, after its first page.
  bool Has(uint64_t offset, uint64_t bytes) const;

  const std::byte* const memory_;
  const uint64_t bytes_;
};

// Makes `size` zeroed floats in the arena, or on the heap if `arena` is null or full.
FloatBuffer MakeFloats(SharedArena* arena, size_t size);

}  // namespace leeway
