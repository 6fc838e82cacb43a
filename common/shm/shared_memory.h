// Memory that two processes of the same host and user share. The owner makes a SharedArena and
// sends the peer a MemoryOffer, which describes it. The peer maps the arena for reading, and after
// that the processes send only offsets. The memory has no file and no name. It disappears when both
// processes have ended, even by SIGKILL.
//
// The arena begins with a page that contains the offer's nonce and the session words. A session is
// the owner's promise to a peer that certain ranges stay unchanged. If the owner has to break the
// promise, because the reader is too slow or is considered dead, the owner first removes the
// session's number from its word. The reader checks the number after its copy, and discards the
// copy if the number is gone:
//
//   owner: CloseSession (word = 0, sequentially consistent); then writes into the range
//   reader: copies the range; then SessionStands (full fence, reads the word)
//
// This is the reader's half of a sequence lock (Boehm, "Can seqlocks get along with programming
// language memory models?", 2012). If the copy has even one byte that was written after
// CloseSession, the fences guarantee that the word became zero before the reader's check. So the
// reader sees the zero, or the number of a later session, and never its own number. Full fences are
// necessary because weaker fences do not order the instructions of memcpy (streaming stores, string
// instructions). According to the C++ standard the copy is a data race with the writes, as is all
// communication through shared memory between processes. This race is harmless, because no code
// uses the copied bytes before the number is checked.
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

// The largest size of an arena, and of a peer's offer, in bytes. It limits the address space and
// not the memory.
inline constexpr uint64_t kSharedBytesMax = uint64_t{1} << 40;

// A session: the position of its word in the arena, and its number. The word has this number while
// the session is open. A number is never 0.
struct SharedSession {
  uint64_t offset = 0;
  uint64_t number = 0;
};

// The owner's end. Thread-safe. The arena lives as long as a reference to it or to its memory
// exists.
class SharedArena : public std::enable_shared_from_this<SharedArena> {
 public:
  // Reserves address space for ranges of `bytes` bytes in all, which use no memory until they are
  // allocated. Returns INVALID_ARGUMENT if the arena would exceed kSharedBytesMax, and the
  // operating system's error if it refuses this size.
  static absl::StatusOr<std::shared_ptr<SharedArena>> Create(uint64_t bytes);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  // Allocates a range at a page boundary, with unspecified content. The range is freed with the
  // last reference. Its memory is committed, so reads and writes cannot fail. Returns
  // RESOURCE_EXHAUSTED if the arena is full or the system has no memory.
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(uint64_t bytes);

  bool Contains(const void* address) const;
  // Returns the offset of an address from the start of the arena. The address must be in the arena.
  uint64_t OffsetOf(const void* address) const;

  // Opens a session. Returns RESOURCE_EXHAUSTED if all 511 session words are in use.
  absl::StatusOr<SharedSession> OpenSession();
  // Closes a session. Call this function once for each session. After it has returned, the owner
  // may overwrite ranges that the session's peer may be reading.
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
  // The free ranges, as bytes by offset. There is a used range between any two of them.
  std::map<uint64_t, uint64_t> free_ GUARDED_BY(mutex_);
  // All pages below this offset are backed by memory. Later pages may not be.
  uint64_t backed_ GUARDED_BY(mutex_);
  std::vector<uint64_t> free_sessions_ GUARDED_BY(mutex_);
};

// The peer's end: another process's arena, mapped for reading. Thread-safe. The memory stays
// readable after the owner has ended.
class SharedMapping {
 public:
  // Checks every field of an offer and maps its memory. Returns INVALID_ARGUMENT if the size is not
  // possible. Returns NOT_FOUND if the process or the file does not exist. Returns
  // PERMISSION_DENIED if the file belongs to another user, or the system forbids access. Returns
  // FAILED_PRECONDITION if the file is not sealed against shrinking, or is not the offered memory.
  static absl::StatusOr<std::shared_ptr<SharedMapping>> Map(const v1::MemoryOffer& offer);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  // Returns the floats of a range, which are valid as long as the mapping. Returns INVALID_ARGUMENT
  // unless both numbers are multiples of 4 and the range is in the arena, after its first page.
  absl::StatusOr<std::span<const float>> Floats(uint64_t offset, uint64_t bytes) const;

  // Returns `count` words that the owner writes atomically. They are valid as long as the mapping.
  // Returns INVALID_ARGUMENT unless `offset` is a multiple of 8 and the words are in the arena,
  // after its first page.
  absl::StatusOr<std::span<const std::atomic<uint64_t>>> Words(uint64_t offset,
                                                               uint64_t count) const;

  // Returns true if the session was open during all copies that the caller made before this call.
  // Returns false if `session` cannot be a session.
  bool SessionStands(const SharedSession& session) const;

 private:
  SharedMapping(const std::byte* memory, uint64_t bytes) : memory_(memory), bytes_(bytes) {}
  // Returns whether the range is in the arena, after its first page.
  bool Has(uint64_t offset, uint64_t bytes) const;

  const std::byte* const memory_;
  const uint64_t bytes_;
};

// Allocates `size` zeroed floats in the arena, or on the heap if `arena` is null or full.
FloatBuffer MakeFloats(SharedArena* arena, size_t size);

}  // namespace leeway
